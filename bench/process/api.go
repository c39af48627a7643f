package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// API is a process of the API.
type API struct {
	Child *Child
	// Base is its address, with the scheme and without a path.
	Base string
}

// StartAPI builds the command api in a folder, starts it on a database with more
// environment and waits until it is ready.
func StartAPI(ctx context.Context, dir, url string, env ...string) (*API, error) {
	program := filepath.Join(dir, "api")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/countersign-dev/countersign/cmd/api")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build cmd/api: %w\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	_ = free.Close()
	env = append([]string{"DATABASE_URL=" + url, "COUNTERSIGN_LISTEN=" + address, "COUNTERSIGN_LINGER=0s", "COUNTERSIGN_LOG_LEVEL=error"}, env...)
	child, err := Start(program, env, nil, os.Stderr)
	if err != nil {
		return nil, err
	}
	a := &API{child, "http://" + address}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		res, err := http.Get(a.Base + "/readyz")
		if err != nil {
			return false, nil
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		child.Kill()
		return nil, fmt.Errorf("the API is not ready: %w", err)
	}
	return a, nil
}
