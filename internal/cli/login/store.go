package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// early is how long before a token ends another one is got.
const early = time.Minute

// ErrNone is the error for a server without a login.
var ErrNone = errors.New("not logged in to this server")

// ErrOver is the error for a login that has ended and cannot be renewed.
var ErrOver = errors.New("the login has expired")

// Store keeps logins in a folder that only its owner can read, one for each
// server. Several processes may use it at once.
type Store struct{ dir string }

// NewStore returns the store in a folder, which need not be there.
func NewStore(dir string) Store { return Store{dir} }

func (s Store) path() string { return filepath.Join(s.dir, "logins.json") }

// Load returns the stored login to a server. The error is ErrNone, or that of a
// file that cannot be read, or that others can read.
func (s Store) Load(server string) (Session, error) {
	all, err := s.read()
	if err != nil {
		return Session{}, err
	}
	found, ok := all[server]
	if !ok {
		return Session{}, ErrNone
	}
	return found, nil
}

// Save keeps a login, in place of another one to the same server.
func (s Store) Save(ctx context.Context, in Session) error {
	return s.change(ctx, func(all map[string]Session) { all[in.Server] = in })
}

// Delete forgets the login to a server. A missing one is not an error.
func (s Store) Delete(ctx context.Context, server string) error {
	if _, err := os.Stat(s.path()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.change(ctx, func(all map[string]Session) { delete(all, server) })
}

// Fresh returns the login to a server with a token that is valid for a while,
// which it gets from the issuer if need be. Of several processes that need
// one, one gets it for all: issuers take a second use of what renews a login
// for theft. The error is ErrNone, or ErrOver with its reason.
func (s Store) Fresh(ctx context.Context, server string, now time.Time) (Session, error) {
	is, err := s.Load(server)
	if err != nil || now.Add(early).Before(is.ExpiresAt) {
		return is, err
	}
	free, err := s.lock(ctx)
	if err != nil {
		return Session{}, err
	}
	defer free()
	all, err := s.read() // another process may have been quicker
	if err != nil {
		return Session{}, err
	}
	is, ok := all[server]
	switch {
	case !ok:
		return Session{}, ErrNone
	case now.Add(early).Before(is.ExpiresAt):
		return is, nil
	case is.Refresh == "":
		return Session{}, fmt.Errorf("%w, and the issuer returned no refresh token", ErrOver)
	}
	next, err := renew(ctx, is)
	if err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrOver, err)
	}
	all[server] = next
	return next, s.write(all)
}

func (s Store) change(ctx context.Context, do func(map[string]Session)) error {
	free, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	all, err := s.read()
	if err != nil {
		return err
	}
	do(all)
	return s.write(all)
}

func (s Store) read() (map[string]Session, error) {
	all := make(map[string]Session)
	file, err := os.Open(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s: run chmod 600 on it, log out, and log in again", s.path())
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not a file of logins; delete it and log in again", s.path())
	}
	return all, nil
}

// write puts another file in the place of the one that there is, so that
// nobody reads half of one.
func (s Store) write(all map[string]Session) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(s.dir, "logins-*.json") // for its owner alone
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	_, err = draft.Write(append(text, '\n'))
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), s.path())
	}
	if err != nil {
		return fmt.Errorf("store the login: %w", errors.Join(err, os.Remove(draft.Name())))
	}
	return nil
}

// lock waits until no other process changes the logins. The returned function
// releases it.
func (s Store) lock(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("store the login: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "logins.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store the login: %w", err)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) // file descriptors are small
		switch {
		case err == nil:
			return func() { _ = file.Close() }, nil // which also lets it go
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, fmt.Errorf("store the login: %w", errors.Join(err, file.Close()))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}
