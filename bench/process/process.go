// Package process starts the child processes of a run, restarts them, kills
// and freezes them. It is independent of their work.
package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/source/mcp"
)

// Child is a running child process.
type Child struct {
	process *os.Process
	input   io.Closer     // its end makes a watching child exit
	ended   chan struct{} // closed when it has ended
	state   *os.ProcessState
}

// Start starts a program with more environment. Its output goes to stdout and
// stderr, which may be nil.
func Start(program string, env []string, stdout, stderr io.Writer, args ...string) (*Child, error) {
	cmd := exec.Command(program, args...) // no context: the caller kills or stops the process
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = mcp.OwnGroup()
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
		c.state = cmd.ProcessState
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c.process = cmd.Process
	return c, nil
}

// PID returns the process id of the child.
func (c *Child) PID() int { return c.process.Pid }

// Ended is closed when the child has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// State waits for the end of the child and returns its exit state and usage.
func (c *Child) State() *os.ProcessState {
	<-c.ended
	return c.state
}

// Kill ends the child as a crash would, and waits for its end.
func (c *Child) Kill() {
	_ = c.process.Kill() // the only error is that it has ended
	<-c.ended
}

// Stop asks the child to end, and kills it after the grace period. It reports
// whether the child ended in time.
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

const (
	// StopGrace is the time that a child has to stop.
	StopGrace = 20 * time.Second
	// restartPause keeps a child that ends immediately from being restarted in a
	// tight loop.
	restartPause = 100 * time.Millisecond
)

// Set is a fixed number of processes, each replaced when it ends, as a
// supervisor would do it.
type Set struct {
	start  func(slot, generation int) (*Child, error)
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	children []*Child
	exits    []time.Time
	late     int
	failed   error
}

// NewSet starts size processes. Generations count from 1.
func NewSet(size int, start func(slot, generation int) (*Child, error)) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{start: start, cancel: cancel, children: make([]*Child, size)}
	for slot := range size {
		s.wg.Go(func() { s.supervise(ctx, slot) })
	}
	return s
}

// supervise keeps a process running in a slot until ctx ends.
func (s *Set) supervise(ctx context.Context, slot int) {
	for generation := 1; ctx.Err() == nil; generation++ {
		c, err := s.start(slot, generation)
		s.mu.Lock()
		s.children[slot] = c
		if err != nil {
			s.failed = err
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			if !c.Stop(StopGrace) {
				s.mu.Lock()
				s.late++
				s.mu.Unlock()
			}
			return
		case <-c.ended:
		}
		s.mu.Lock()
		killed := s.children[slot] != c
		if !killed {
			s.exits = append(s.exits, time.Now())
		}
		s.mu.Unlock()
		if !killed {
			_ = Wait(ctx, restartPause) // the loop ends with ctx
		}
	}
}

// Kill ends the process in a slot with SIGKILL and returns when that was. It
// reports false if none is found.
func (s *Set) Kill(slot int) (time.Time, bool) {
	s.mu.Lock()
	c := s.children[slot]
	s.children[slot] = nil
	s.mu.Unlock()
	if c == nil {
		return time.Time{}, false
	}
	select {
	case <-c.ended:
		return time.Time{}, false
	default:
	}
	c.Kill()
	return time.Now(), true
}

// Freeze stops the process in a slot with SIGSTOP and returns when that was,
// and a function that continues it. It reports false if none is found.
func (s *Set) Freeze(slot int) (at time.Time, resume func(), ok bool) {
	s.mu.Lock()
	c := s.children[slot]
	s.mu.Unlock()
	if c == nil || c.process.Signal(syscall.SIGSTOP) != nil {
		return time.Time{}, nil, false
	}
	return time.Now(), func() { _ = c.process.Signal(syscall.SIGCONT) }, true // the only error is that it has ended
}

// Stop asks all processes to stop and waits for them. It returns the times at
// which others exited by themselves, the number that had to be killed, and the
// error of a failed start.
func (s *Set) Stop() (exits []time.Time, late int, err error) {
	s.cancel()
	s.wg.Wait()
	return s.exits, s.late, s.failed
}
