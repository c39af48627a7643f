package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Most children are this program, which takes its role from the environment: not
// from the command line, since the role holds the database's password.
const (
	roleEnv  = "CHAOS_ROLE"
	orderEnv = "CHAOS_ORDER"

	roleTally  = "counter"
	roleWorker = "worker"
)

// asChild runs the role of this process, if it is a child, and reports whether it
// is one.
func asChild() (code int, ok bool) {
	role := os.Getenv(roleEnv)
	if role == "" {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process, at the latest
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the parent's end
		os.Exit(1)
	}()
	if err := serveAs(ctx, role, []byte(os.Getenv(orderEnv))); err != nil {
		fmt.Fprintf(os.Stderr, "chaos %s: %v\n", role, err)
		return 1, true
	}
	return 0, true
}

func serveAs(ctx context.Context, role string, order []byte) error {
	switch role {
	case roleTally:
		var o serverConfig
		if err := json.Unmarshal(order, &o); err != nil {
			return fmt.Errorf("read order: %w", err)
		}
		return serveCounting(ctx, o, os.Stdout)
	case roleWorker:
		var o workerOrder
		if err := json.Unmarshal(order, &o); err != nil {
			return fmt.Errorf("read order: %w", err)
		}
		return work(ctx, o, os.Stderr)
	}
	return fmt.Errorf("unknown role %q", role)
}

// child is a running child process.
type child struct {
	process *os.Process
	hold    io.Closer     // the child's input; its end tells the child to end
	ended   chan struct{} // closed when it has ended
}

// spawnSelf starts this program as a child. What it prints goes to stdout and
// stderr, which may be nil.
func spawnSelf(role string, order any, stdout, stderr io.Writer) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, fmt.Errorf("write order: %w", err)
	}
	return spawn(program, []string{roleEnv + "=" + role, orderEnv + "=" + string(text)}, stdout, stderr)
}

// spawn starts a program as a child, with our environment and more.
func spawn(program string, env []string, stdout, stderr io.Writer) (*child, error) {
	cmd := exec.Command(program) // no context: the caller kills or stops the process
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = ownGroup()
	// A killed child's output must not hold us up.
	cmd.WaitDelay = time.Second
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c := &child{hold: hold, ended: make(chan struct{})}
	started := make(chan error)
	// The child owns this goroutine: whoever started it waits for ended. It
	// keeps its thread to itself, because Linux sends the signal for a
	// parent's death when the thread dies that started the child.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // most of them are killed
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c.process = cmd.Process
	return c, nil
}

// kill ends the child as a crash would, and waits until it is gone.
func (c *child) kill() {
	_ = c.process.Kill() // the only error is that it has ended
	<-c.ended
}

// stop asks the child to end, and kills it if it does not within the grace. It
// reports whether it did.
func (c *child) stop(grace time.Duration) bool {
	_ = c.process.Signal(syscall.SIGTERM) // the only error is that it has ended
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
		c.kill()
		return false
	}
}
