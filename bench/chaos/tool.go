package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/process"
)

// counterEnv has the configuration of the counting server in the environment of
// a child of this program.
const counterEnv = "CHAOS_COUNTER"

// runCounter runs the counting server if this process is such a child, and
// reports whether it is one.
func runCounter() (code int, ok bool) {
	config, ok := os.LookupEnv(counterEnv)
	if !ok {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process, at the latest
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the parent's end
		os.Exit(1)
	}()
	var cfg counting.Config
	err := json.Unmarshal([]byte(config), &cfg)
	if err == nil {
		err = counting.Serve(ctx, cfg, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: counting server:", err)
		return 1, true
	}
	return 0, true
}

// tool is the counting server as a process of its own. If it dies, it is
// started again at the same address, as a supervisor would do it.
type tool struct {
	url string
	set *process.Set

	mu       sync.Mutex
	cfg      counting.Config
	restarts int
}

// startTool starts a counting server and waits for its address.
func startTool(ctx context.Context, cfg counting.Config) (*tool, error) {
	cfg.Address = "127.0.0.1:0"
	t := &tool{cfg: cfg}
	started := make(chan error, 1)
	t.set = process.NewSet(1, func(_, generation int) (*process.Child, error) {
		if generation > 1 {
			return t.restart()
		}
		c, err := t.start(ctx)
		started <- err
		return c, err
	})
	if err := <-started; err != nil {
		_, _, _ = t.set.Stop() // its error is this one
		return nil, err
	}
	return t, nil
}

// start starts the process and reads its address. The mutex is held, or t is
// not shared yet.
func (t *tool) start(ctx context.Context) (_ *process.Child, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start counting server: %w", err)
		}
	}()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(t.cfg)
	if err != nil {
		return nil, err
	}
	r, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c, err := process.Start(program, []string{counterEnv + "=" + string(config)}, out, os.Stderr)
	_ = out.Close() // the child has its own handle
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.Kill)
	defer stop()
	var at *url.URL
	line, err := bufio.NewReader(r).ReadString('\n')
	if err == nil {
		at, err = url.Parse(strings.TrimSpace(line))
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	t.url, t.cfg.Address = at.String(), at.Host
	return c, nil
}

func (t *tool) restart() (*process.Child, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.restarts++
	if t.cfg.Fault == counting.Dies { // it has had its effect
		t.cfg.Setting = counting.Setting{}
	}
	return t.start(context.Background())
}

// stop ends the server and returns why it could not be started again.
func (t *tool) stop() error {
	_, _, err := t.set.Stop()
	return err
}

// restartCount returns the number of restarts of the server.
func (t *tool) restartCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.restarts
}

// setFault changes the fault, of a server that is just starting too.
func (t *tool) setFault(ctx context.Context, s counting.Setting) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg.Setting = s
	return s.Set(ctx, t.url)
}
