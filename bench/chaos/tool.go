package main

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/process"
)

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

// start starts the process and reads its address. The mutex is held, or nobody
// else uses t yet.
func (t *tool) start(ctx context.Context) (*process.Child, error) {
	r, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start counting server: %w", err)
	}
	defer r.Close()
	c, err := startRole(roleCounter, t.cfg, out, os.Stderr)
	_ = out.Close() // the child has its own handle
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.Kill)
	defer stop()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		c.Kill()
		return nil, fmt.Errorf("wait for counting server: %w", err)
	}
	at, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		c.Kill()
		return nil, fmt.Errorf("read counting server's address: %w", err)
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

// restartCount returns how often the server has died.
func (t *tool) restartCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.restarts
}

// set changes the fault, of a server that is just starting too.
func (t *tool) setFault(ctx context.Context, s counting.Setting) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg.Setting = s
	return s.Set(ctx, t.url)
}
