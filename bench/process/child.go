// Package process starts the child processes of a run, restarts them, kills
// and freezes them. It does not know what they do.
package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Child is a running child process.
type Child struct {
	process *os.Process
	input   io.Closer     // its end tells a child that watches it to end
	ended   chan struct{} // closed when it has ended
}

// Start starts a program with more environment. What it prints goes to stdout
// and stderr, which may be nil.
func Start(program string, env []string, stdout, stderr io.Writer) (*Child, error) {
	cmd := exec.Command(program) // no context: the caller kills or stops the process
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second // the output of a killed child does not delay this process
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c := &Child{input: input, ended: make(chan struct{})}
	started := make(chan error)
	// Kill, Stop and Set wait for ended. The goroutine keeps its thread,
	// because Linux sends the signal for a parent's death when the thread ends
	// that started the child.
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

// Kill ends the child as a crash would, and waits for its end.
func (c *Child) Kill() {
	_ = c.process.Kill() // the only error is that it has ended
	<-c.ended
}

// Stop asks the child to end, and kills it if it does not within the grace
// period. It reports whether it did.
func (c *Child) Stop(grace time.Duration) bool {
	_ = c.process.Signal(syscall.SIGTERM) // the only error is that it has ended
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
		c.Kill()
		return false
	}
}

// Wait waits for a time, and returns the error of ctx if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Poll calls fn, at intervals, until fn reports that it is done, or fails, or
// ctx ends.
func Poll(ctx context.Context, interval time.Duration, fn func() (done bool, err error)) error {
	for {
		if done, err := fn(); done || err != nil {
			return err
		}
		if err := Wait(ctx, interval); err != nil {
			return err
		}
	}
}
