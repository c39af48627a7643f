package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// stopTimeout bounds the immediate shutdown of the server.
const stopTimeout = 20 * time.Second

// Snapshot copies the server's data folder, as a snapshot of its disk does, and starts
// the server again.
func (s *Server) Snapshot(ctx context.Context) error {
	return s.whileDown(ctx, func() error {
		out, err := exec.CommandContext(ctx, "cp", "-a", s.data(), s.data()+".before").CombinedOutput()
		if err != nil {
			return fmt.Errorf("copy the data folder: %w\n%s", err, out)
		}
		return nil
	})
}

// SetBack puts the copy of Snapshot in place of the data folder, and starts the server
// again.
func (s *Server) SetBack(ctx context.Context) error {
	return s.whileDown(ctx, func() error {
		if err := os.RemoveAll(s.data()); err != nil {
			return err
		}
		return os.Rename(s.data()+".before", s.data())
	})
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// whileDown crashes the server, calls fn and starts the server.
func (s *Server) whileDown(ctx context.Context, fn func() error) error {
	if err := syscall.Kill(s.pid(), syscall.SIGQUIT); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	down, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := process.Poll(down, upPoll, func() (bool, error) {
		_, err := os.Stat(filepath.Join(s.data(), "postmaster.pid"))
		return errors.Is(err, fs.ErrNotExist), nil
	})
	if err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	if err := fn(); err != nil {
		return err
	}
	return s.Restart(ctx, embedded.Immediate)
}
