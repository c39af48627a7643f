package counting

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

	"github.com/countersign-dev/countersign/bench/process"
)

// counterEnv has the configuration of the counting server in the environment of
// a child of this program.
const counterEnv = "CHAOS_COUNTER"

// RunChild runs the server if this process is a child that Start started, and
// reports whether it is one.
func RunChild() (code int, ok bool) {
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
	var cfg Config
	err := json.Unmarshal([]byte(config), &cfg)
	if err == nil {
		err = Serve(ctx, cfg, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: counting server:", err)
		return 1, true
	}
	return 0, true
}

// Process is a server as a process of its own. If it dies, it is started again at
// the same address, as a supervisor would do it.
type Process struct {
	URL string
	set *process.Set

	mu       sync.Mutex
	cfg      Config
	restarts int
}

// Start starts a server and waits for its address. It must be stopped.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	cfg.Address = "127.0.0.1:0"
	p := &Process{cfg: cfg}
	started := make(chan error, 1)
	p.set = process.NewSet(1, func(_, generation int) (*process.Child, error) {
		if generation > 1 {
			return p.restart()
		}
		c, err := p.start(ctx)
		started <- err
		return c, err
	})
	if err := <-started; err != nil {
		_, _, _ = p.set.Stop() // its error is this one
		return nil, err
	}
	return p, nil
}

// start starts the process and reads its address. The mutex is held, or p is
// not shared yet.
func (p *Process) start(ctx context.Context) (_ *process.Child, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start counting server: %w", err)
		}
	}()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(p.cfg)
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
	p.URL, p.cfg.Address = at.String(), at.Host
	return c, nil
}

func (p *Process) restart() (*process.Child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts++
	if p.cfg.Fault == Dies { // it has had its effect
		p.cfg.Setting = Setting{}
	}
	return p.start(context.Background())
}

// Stop ends the server and returns why it could not be started again.
func (p *Process) Stop() error {
	_, _, err := p.set.Stop()
	return err
}

// Restarts returns the number of restarts of the server.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// SetFault changes the fault, of a server that is just starting too.
func (p *Process) SetFault(ctx context.Context, s Setting) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Setting = s
	return s.Set(ctx, p.URL)
}
