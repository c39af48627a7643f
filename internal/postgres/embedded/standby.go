//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Standby starts a server with a copy of the data of s, in a temporary folder, with
// the settings and the password of s. It takes no writes until it is promoted, and
// replicates once its primary_conninfo is set. s is down while its data is copied.
func (s *Server) Standby(ctx context.Context) (_ *Server, err error) {
	t := &Server{bin: s.bin, account: s.account, settings: s.settings, password: s.password, log: s.log}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := t.takeFolder(Config{}); err != nil {
		return nil, err
	}
	if err := s.copyTo(ctx, t.folder.dataDir()); err != nil {
		return nil, fmt.Errorf("copy a server for a standby: %w", err)
	}
	signal := filepath.Join(t.folder.dataDir(), "standby.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), s.account.own(signal)); err != nil {
		return nil, fmt.Errorf("make the copy a standby: %w", err)
	}
	return t, t.launch(ctx, 0)
}

// copyTo copies the data to a folder that does not exist, and starts the server again.
func (s *Server) copyTo(ctx context.Context, dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(ctx, Fast)
	out, err := exec.CommandContext(ctx, "cp", "-a", s.folder.dataDir(), dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return errors.Join(err, s.launch(ctx, s.port))
}
