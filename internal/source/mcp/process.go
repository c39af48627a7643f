package mcp

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stopGrace is how long a child may take to exit after its input was closed,
	// and again after it was asked to terminate.
	stopGrace = time.Second
	// drainGrace is how long the output of a dead child is still read. It
	// matters only if a descendant outside the group holds the pipes.
	drainGrace = time.Second
	// tailBytes is the size of the stored end of a child's standard error.
	tailBytes = 8 << 10
)

// process is a child in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // our end
	stdout *os.File // our end
	stderr *os.File // our end
	tail   tail
	log    *slog.Logger

	exited  chan struct{} // closed when the child was waited for
	drained chan struct{} // closed when its standard error ended
	once    sync.Once
	// stopped is set if this process stopped the child.
	stopped atomic.Bool
}

// start starts the command of a configuration.
func start(cfg Config, log *slog.Logger) (*process, error) {
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Dir = cfg.Dir
	cmd.Env = childEnviron(cfg.Env)
	cmd.SysProcAttr = OwnGroup()

	p := &process{cmd: cmd, log: log, exited: make(chan struct{}), drained: make(chan struct{})}
	theirs, err := p.pipes()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.supervise(started) // ends with the child, for which stop waits
	err = <-started
	for _, f := range theirs {
		_ = f.Close() // the child has its own copy
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	go p.drain() // ends with the child or drainGrace later; stop waits
	return p, nil
}

// childEnviron returns the environment of a child: the variables with which
// programs such as npx find other programs and their files, and the configured
// ones, which are last and take precedence.
func childEnviron(configured []string) []string {
	environ := make([]string, 0, 2+len(configured))
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return append(environ, configured...)
}

// pipes creates the three pipes and returns the child's ends.
func (p *process) pipes() ([]*os.File, error) {
	var files []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range files {
				_ = f.Close() // nothing was written
			}
			return nil, err
		}
		files = append(files, r, w)
	}
	p.cmd.Stdin, p.stdin = files[0], files[1]
	p.stdout, p.cmd.Stdout = files[2], files[3]
	p.stderr, p.cmd.Stderr = files[4], files[5]
	return []*os.File{files[0], files[3], files[5]}, nil
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close() // closing a pipe twice is harmless
	}
}

// supervise starts the child and waits for it on one thread: on Linux the child
// is tied to the thread that started it, which must therefore live.
func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is read from ProcessState
	killGroup(p.cmd.Process)
	deadline := time.Now().Add(drainGrace)
	_ = p.stdout.SetReadDeadline(deadline) // fails only on a closed pipe
	_ = p.stderr.SetReadDeadline(deadline) // fails only on a closed pipe
	close(p.exited)
}

// drain reads the standard error of the child, which would otherwise block.
func (p *process) drain() {
	defer close(p.drained)
	_, _ = io.Copy(&p.tail, p.stderr) // the tail contains the output before an error
	<-p.exited
	p.log.Debug("mcp server ended",
		slog.String("state", p.cmd.ProcessState.String()),
		slog.String("stderr_tail", p.tail.String()))
}

// kill ends the child and its group immediately. It does not signal a child
// after Wait, whose process id may have been reused.
func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		p.stopped.Store(true)
		killGroup(p.cmd.Process)
	}
}

// stop closes the child's input and waits for it to exit. If it does not, stop
// terminates and then kills its group.
func (p *process) stop() error {
	var err error
	p.once.Do(func() {
		p.stopped.Store(true)
		err = p.stdin.Close()
		if !p.gone() {
			terminateGroup(p.cmd.Process)
			if !p.gone() {
				p.kill()
			}
		}
	})
	<-p.exited
	<-p.drained
	p.closePipes()
	return err
}

// gone waits stopGrace for the child to exit.
func (p *process) gone() bool {
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// tail stores the last tailBytes that are written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailBytes):]...)
	if extra := len(t.kept) - tailBytes; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// String returns the stored bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
