//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

const (
	// killed is the last mode: SIGKILL.
	killed Mode = "killed"
	// fastGrace is the time after which a fast shutdown becomes an immediate one,
	// and quitGrace the time from there to SIGKILL.
	fastGrace = 10 * time.Second
	quitGrace = 10 * time.Second
)

// process is a server's first process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() { // stop waits for it
		_ = cmd.Wait() // an exit status other than 0 is in cmd.ProcessState; the log has the cause
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop ends the process and returns how it ended: in the given mode, or in a
// harder one if that took too long or ctx ended.
func (p *process) stop(ctx context.Context, mode Mode) Mode {
	if mode == Fast && !p.signal(ctx, syscall.SIGINT, fastGrace) {
		mode = Immediate
	}
	if mode == Immediate && !p.signal(context.WithoutCancel(ctx), syscall.SIGQUIT, quitGrace) {
		mode = killed
	}
	if mode == killed {
		// Its children detect the end of their parent.
		_ = p.cmd.Process.Kill() // the only error is that it has ended
		<-p.done
	}
	return mode
}

// signal sends a signal and reports whether the process ended in time.
func (p *process) signal(ctx context.Context, sig os.Signal, grace time.Duration) bool {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// guardScript reads the server's process id from each line of its input. The
// end of its input is the end of the parent: it ends the server then and
// removes the temporary folder.
const guardScript = `pid=
while read -r line; do pid=$line; done
tries=0
if [ -n "$pid" ] && kill -QUIT "$pid" 2>/dev/null; then
	while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 300 ]; do
		sleep 0.1 || sleep 1
		tries=$((tries + 1))
	done
fi
rm -rf "$1"
`

// guard is a shell process that outlives its parent by a moment, so that no
// server and no temporary folder stays behind even if the parent is killed.
type guard struct {
	cmd   *exec.Cmd
	input *os.File // while it is open, the guard waits
}

// newGuard starts a guard that removes the folder temporary at the end.
func newGuard(temporary string) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the server's guard: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript, "countersign-pg-guard", temporary) // the guard outlives every context
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's signals
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server's guard: %w", err), w.Close())
	}
	return &guard{cmd: cmd, input: w}, nil
}

// watch makes the guard end the process pid with the parent; none for 0.
func (g *guard) watch(pid int) {
	line := ""
	if pid != 0 {
		line = fmt.Sprint(pid)
	}
	_, _ = fmt.Fprintln(g.input, line) // a guard that has ended cannot be notified
}

// dismiss ends the guard without an action. A nil guard has none.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill() // it may have ended
	_ = g.cmd.Wait()         // "signal: killed" is expected, also the second time
	_ = g.input.Close()      // the reader has ended
}

// account is the unprivileged user that a server runs as when its parent is
// root. A nil account means the current user.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount returns the account for servers: nil unless the current user
// is root, since PostgreSQL does not run as root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil // nil means the current user
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("postgres cannot run as root, and neither user postgres nor user nobody exists to run it as: " +
		"create one, or run this as another user")
}

// own makes the account the owner of a file or folder.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("make user %s the owner of %s: %w", a.name, path, err)
	}
	return nil
}

// canEnter returns an error if the account may not enter a folder.
func (a *account) canEnter(dir string) error {
	if a == nil {
		return nil
	}
	if err := a.command(exec.Command("/bin/sh", "-c", ":"), dir).Run(); err != nil {
		return fmt.Errorf("user %s, which postgres runs as because it does not run as root, may not enter %s: use a folder elsewhere: %w", a.name, dir, err)
	}
	return nil
}

// command prepares a program that runs as the account, in its own process
// group (so that Ctrl-C in a terminal does not reach it), in a folder that the
// account may enter, and with only those environment variables that locate
// programs and libraries.
func (a *account) command(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}
