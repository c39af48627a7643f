//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// logTailBytes bounds the part of the log in an error.
	logTailBytes = 2048
	// memoryBytes is the free space that a file system in memory must have for a
	// Fast server: several times the size of the test suite's databases.
	memoryBytes = 6 << 30
)

// folder is the folder of a server:
//
//	data/         the cluster
//	postgres.log  the server's log since the last start
//	lock          locked by the process that started the server
type folder struct {
	dir string
	// temporary is removed with the server. It contains the socket, which only the
	// server's owner can reach, and is dir itself if no folder was configured.
	temporary string
	lock      *os.File
}

// openFolder returns the folder cfg.Dir, created if it is missing; a temporary
// one if that is empty, in memory if the server is Fast.
func openFolder(cfg Config, acc *account) (_ *folder, err error) {
	f := &folder{}
	var places []string
	if cfg.Fast && cfg.Dir == "" {
		places = inMemory()
	}
	if f.temporary, err = makeTemporary(acc, append(places, os.TempDir(), "/tmp", "/var/tmp")); err != nil {
		return nil, err
	}
	dir := cfg.Dir
	if dir == "" {
		f.dir = f.temporary
		return f, nil
	}
	if err := f.open(dir, acc); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) open(dir string, acc *account) (err error) {
	if f.dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find the folder %s: %w", dir, err)
	}
	if !exists(f.dir) {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return fmt.Errorf("create the server's folder: %w", err)
		}
		if err := acc.own(f.dir); err != nil {
			return err
		}
	}
	return acc.canEnter(f.dir)
}

// makeTemporary creates a folder that the account owns, in the first of the
// places that the account can enter.
func makeTemporary(acc *account, places []string) (string, error) {
	var reasons error
	for _, place := range places {
		if err := acc.canEnter(place); err != nil {
			reasons = errors.Join(reasons, err)
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
	return "", fmt.Errorf("create a temporary folder: %w", reasons)
}

func (f *folder) dataDir() string { return filepath.Join(f.dir, "data") }
func (f *folder) logFile() string { return filepath.Join(f.dir, "postgres.log") }
func (f *folder) pidFile() string { return filepath.Join(f.dataDir(), "postmaster.pid") }

// claim makes this process the only one that starts servers here. It returns a
// *RunningError if there is another, or a server that outlived its parent. It
// removes the postmaster.pid of a server that has ended.
func (f *folder) claim() error {
	lock, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the server's folder: %w", err)
	}
	pid, running := f.runningServer()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if cerr := lock.Close(); cerr != nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock the server's folder: %w", errors.Join(err, cerr))
		}
		return &RunningError{Dir: f.dir, Pid: pid}
	}
	f.lock = lock
	if running {
		return &RunningError{Dir: f.dir, Pid: pid}
	}
	// PostgreSQL would take any process with the old id for a running server, and
	// would not start.
	if err := os.Remove(f.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the process id of a server that is gone: %w", err)
	}
	return nil
}

// runningServer returns the process id of a server on the data, with any
// parent, and reports whether one is running: its postmaster.pid has the
// process id, the port and the socket's folder on lines 1, 4 and 5, and the
// socket accepts connections.
func (f *folder) runningServer() (pid int, ok bool) {
	text, err := os.ReadFile(f.pidFile())
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 5 {
		return 0, false
	}
	if pid, err = strconv.Atoi(lines[0]); err != nil {
		return 0, false
	}
	conn, err := net.Dial("unix", filepath.Join(lines[4], ".s.PGSQL."+lines[3]))
	if err != nil {
		return 0, false
	}
	_ = conn.Close() // nothing was sent
	return pid, true
}

// explain adds the end of the server's log to the error of a start.
func (f *folder) explain(err error) error {
	log, _ := os.ReadFile(f.logFile()) // without a log there is nothing to add
	text := tail(log)
	if strings.Contains(text, "could not create any TCP/IP sockets") {
		err = errors.Join(syscall.EADDRINUSE, err)
	}
	if text == "" {
		return fmt.Errorf("start postgres: %w", err)
	}
	return fmt.Errorf("start postgres: %w; its log ends with:\n%s", err, text)
}

// tail returns the last lines of a log, logTailBytes at most.
func tail(log []byte) string {
	text := string(log)
	if len(text) > logTailBytes {
		_, text, _ = strings.Cut(text[len(text)-logTailBytes:], "\n")
	}
	return strings.TrimSpace(text)
}

// close unlocks the folder and removes the temporary one.
func (f *folder) close() error {
	err := os.RemoveAll(f.temporary)
	if f.lock != nil {
		// Closing the file is not enough: a child that is just being forked also holds
		// the lock, until it runs its program.
		err = errors.Join(err, syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN), f.lock.Close())
		f.lock = nil
	}
	if err != nil {
		return fmt.Errorf("clean up after postgres: %w", err)
	}
	return nil
}
