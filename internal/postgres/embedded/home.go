//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// longestSocketDir leaves room for "/.s.PGSQL.65535" and its lock file in
	// the 104 bytes that a socket's path may have on the BSDs.
	longestSocketDir = 80
	// logTailBytes is how much of the log an error may quote.
	logTailBytes = 2048
	readyPoll    = 5 * time.Millisecond
)

// home is the folder that a server lives in:
//
//	data/         the cluster
//	socket/       its socket, for its owner alone, unless that path is too long
//	postgres.log  what the server said since the last start
//	lock          held by the process that started the server
type home struct {
	dir       string
	socketDir string
	account   *account
	temporary bool
	lock      *os.File
}

// openHome returns the home in dir, or in a fresh temporary folder, with all
// its folders but data.
func openHome(dir string, acc *account) (*home, error) {
	h := &home{dir: dir, account: acc}
	if err := h.makeDirs(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *home) makeDirs() error {
	if h.dir == "" {
		dir, err := makeTemporary(h.account)
		if err != nil {
			return err
		}
		h.dir, h.temporary = dir, true
	}
	dir, err := filepath.Abs(h.dir)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", h.dir, err)
	}
	h.dir = dir
	if !exists(dir) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create the server's folder: %w", err)
		}
		if err := h.account.own(dir); err != nil {
			return err
		}
	}
	if err := h.account.reaches(dir); err != nil {
		return err
	}
	return h.makeSocketDir()
}

func (h *home) makeSocketDir() error {
	dir := filepath.Join(h.dir, "socket")
	if len(dir) > longestSocketDir {
		dir, err := makeTemporary(h.account)
		if err != nil {
			return err
		}
		h.socketDir = dir
		return nil
	}
	h.socketDir = dir
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create the socket's folder: %w", err)
	}
	// An older folder may have been opened to others; trust rests on its mode.
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the socket's folder to others: %w", err)
	}
	return h.account.own(dir)
}

// makeTemporary creates a folder of the account's, in the first of the usual
// places that it can reach.
func makeTemporary(acc *account) (string, error) {
	var unreachable error
	for _, place := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if err := acc.reaches(place); err != nil {
			unreachable = errors.Join(unreachable, err)
			continue
		}
		dir, err := os.MkdirTemp(place, "countersign-pg-")
		if err != nil {
			return "", fmt.Errorf("create a temporary folder: %w", err)
		}
		if err := acc.own(dir); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		return dir, nil
	}
	return "", fmt.Errorf("create a temporary folder: %w", unreachable)
}

func (h *home) dataDir() string { return filepath.Join(h.dir, "data") }
func (h *home) logFile() string { return filepath.Join(h.dir, "postgres.log") }

// doomed lists the folders that must not outlive the server.
func (h *home) doomed() []string {
	var dirs []string
	if h.temporary {
		dirs = append(dirs, h.dir)
	}
	if h.socketDir != "" && filepath.Dir(h.socketDir) != h.dir {
		dirs = append(dirs, h.socketDir)
	}
	return dirs
}

// claim makes this process the only one that starts servers here, and returns
// a *RunningError if there is another, or a server that outlived its parent.
// It removes the mark of a server that is gone.
func (h *home) claim() error {
	f, err := os.OpenFile(filepath.Join(h.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the server's folder: %w", err)
	}
	pid, running := h.livePostmaster()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if cerr := f.Close(); cerr != nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock the server's folder: %w", errors.Join(err, cerr))
		}
		return &RunningError{Dir: h.dir, Pid: pid}
	}
	h.lock = f
	if running {
		return &RunningError{Dir: h.dir, Pid: pid}
	}
	// PostgreSQL would take any process that has the old number by now for
	// its own, and refuse to start.
	if err := os.Remove(h.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the mark of a server that is gone: %w", err)
	}
	return nil
}

// livePostmaster returns the process of the server that runs on the data now,
// whoever started it, and 0 and false if there is none.
func (h *home) livePostmaster() (int, bool) {
	text, err := os.ReadFile(h.pidFile())
	if err != nil {
		return 0, false
	}
	mark := parsePidFile(string(text))
	if mark.pid <= 1 || !isPostmaster(mark.pid, h.dataDir()) {
		return 0, false
	}
	return mark.pid, true
}

// awaitReady waits until the server takes connections, or is gone.
func (h *home) awaitReady(ctx context.Context, p *process) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.done:
			return fmt.Errorf("it ended at once: %s", p.state)
		case <-tick.C:
		}
		text, err := os.ReadFile(h.pidFile())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look whether it is ready: %w", err)
		}
		if mark := parsePidFile(string(text)); mark.ready && mark.pid == p.pid {
			return nil
		}
	}
}

// logTail returns the end of the server's log, or nothing if there is none.
func (h *home) logTail() string {
	f, err := os.Open(h.logFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	return tail(f, logTailBytes)
}

// close gives the folder up, and removes what is temporary.
func (h *home) close() error {
	var err error
	for _, dir := range h.doomed() {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if h.lock != nil {
		// Closing alone would not do: a child that is being forked just now
		// holds the lock too, until it runs its program.
		err = errors.Join(err, syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN), h.lock.Close())
		h.lock = nil
	}
	if err != nil {
		return fmt.Errorf("clean up after postgres: %w", err)
	}
	return nil
}
