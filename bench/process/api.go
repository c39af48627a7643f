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

// Build builds a command of Countersign in a folder, and returns its program.
func Build(ctx context.Context, dir, command string) (program string, err error) {
	program = filepath.Join(dir, command)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/countersign-dev/countersign/cmd/"+command)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/%s: %w\n%s", command, err, out)
	}
	return program, nil
}

// FreeAddress returns an address of this machine that nothing listens on.
func FreeAddress() (string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return free.Addr().String(), free.Close()
}

// Ready reports whether a process answers at its probe for readiness.
func Ready(base string) bool {
	res, err := http.Get(base + "/readyz")
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// StartReady starts a program with more environment, and returns when it is ready by
// its probe at an address, within 30 seconds.
func StartReady(ctx context.Context, program, address string, env []string) (*Child, error) {
	child, err := Start(program, env, nil, os.Stderr)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := Poll(starting, 100*time.Millisecond, func() (bool, error) { return Ready("http://" + address), nil }); err != nil {
		child.Stop(StopGrace)
		return nil, fmt.Errorf("%s is not ready: %w", filepath.Base(program), err)
	}
	return child, nil
}

// WithAPI builds the command api, starts it on a database with more environment,
// and calls fn when it is ready.
func WithAPI(ctx context.Context, url string, fn func(*API) error, env ...string) error {
	dir, err := os.MkdirTemp("", "countersign-api-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := Build(ctx, dir, "api")
	if err != nil {
		return err
	}
	address, err := FreeAddress()
	if err != nil {
		return err
	}
	env = append([]string{"DATABASE_URL=" + url, "COUNTERSIGN_LISTEN=" + address, "COUNTERSIGN_LINGER=0s", "COUNTERSIGN_LOG_LEVEL=error"}, env...)
	child, err := StartReady(ctx, program, address, env)
	if err != nil {
		return err
	}
	defer child.Stop(StopGrace)
	return fn(&API{child, "http://" + address})
}
