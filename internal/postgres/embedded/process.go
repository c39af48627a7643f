//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// killed is the mode of last resort: SIGKILL.
const killed Mode = "killed"

// process is a server's first process, with the guard that ends it should we
// die first.
type process struct {
	pid   int
	os    *os.Process
	guard *guard
	done  chan struct{}    // closed when it has ended
	state *os.ProcessState // valid once done is closed
}

// spawn starts the server's process. Doomed are the folders that the guard
// removes if we die first.
func spawn(cmd *exec.Cmd, doomed []string) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	// The process owns this goroutine: stop waits for it. It keeps its thread
	// to itself, because Linux sends the signal for a parent's death when the
	// thread dies that started the child.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// An exit status other than 0 is in the state; the log has the cause.
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.os, p.pid = cmd.Process, cmd.Process.Pid
	g, err := newGuard(p.pid, doomed)
	if err != nil {
		p.stop(context.Background(), killed)
		return nil, err
	}
	p.guard = g
	return p, nil
}

// stop ends the process and returns how it came to its end: in the given mode,
// or in a rougher one if that took too long or ctx ended.
func (p *process) stop(ctx context.Context, mode Mode) Mode {
	if mode == Fast && !p.signal(ctx, syscall.SIGINT, fastGrace) {
		mode = Immediate
	}
	if mode == Immediate && !p.signal(context.WithoutCancel(ctx), syscall.SIGQUIT, quitGrace) {
		mode = killed
	}
	if mode == killed {
		// Its children notice that their parent is gone.
		_ = p.os.Kill() // the only error is that it has ended
		<-p.done
	}
	if p.guard != nil {
		p.guard.dismiss()
	}
	return mode
}

// signal sends a signal and returns whether the process ended in time.
func (p *process) signal(ctx context.Context, sig os.Signal, grace time.Duration) bool {
	if err := p.os.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}

// watch waits for our end, which it sees as the end of its input, and then
// ends the server and removes its temporary folders.
const watch = `pid=$1
shift
while read -r _; do :; done
kill -QUIT "$pid" 2>/dev/null
tries=0
while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 300 ]; do
	sleep 0.1 || sleep 1
	tries=$((tries + 1))
done
for dir do
	rm -rf "$dir"
done
`

// guard is a small shell that outlives us by a moment, so that nothing of a
// private server stays behind even if we are killed. On Linux the kernel ends
// the server too; elsewhere the guard is all there is.
type guard struct {
	cmd  *exec.Cmd
	hold *os.File // while it is open, the guard waits
}

func newGuard(pid int, doomed []string) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the server's guard: %w", err)
	}
	defer r.Close()
	args := append([]string{"-c", watch, "countersign-pg-guard", fmt.Sprint(pid)}, doomed...)
	cmd := exec.Command("/bin/sh", args...) // the guard outlives every context
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's signals
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server's guard: %w", err), w.Close())
	}
	return &guard{cmd: cmd, hold: w}, nil
}

// dismiss ends the guard without letting it act.
func (g *guard) dismiss() {
	_ = g.cmd.Process.Kill() // it may have ended
	_ = g.cmd.Wait()         // "signal: killed" is what we asked for
	_ = g.hold.Close()       // nobody reads it any more
}
