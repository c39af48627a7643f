package dev

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

// startDatabase connects to the database of the configuration, or starts a
// private server.
func (e *Environment) startDatabase(ctx context.Context) (string, error) {
	if e.cfg.DatabaseURL != "" {
		e.database = e.cfg.DatabaseURL
		return "the one of DATABASE_URL", e.openPool(ctx)
	}
	cfg := embedded.Config{Logger: e.cfg.Log, Download: true, Fast: e.cfg.Dir == ""}
	where := "in a temporary folder"
	if e.cfg.Dir != "" {
		cfg.Dir = filepath.Join(e.dir, "postgres")
		where = "in " + cfg.Dir
	}
	server, err := embedded.Start(ctx, cfg)
	if running, ok := errors.AsType[*embedded.RunningError](err); ok {
		return "", fmt.Errorf("another countersign dev uses %s (its postgres is process %d); stop it, or choose another folder with --data-dir", e.dir, running.Pid)
	}
	if err != nil {
		return "", err
	}
	e.onClose(server.Stop)
	e.watchDatabase(server)
	e.database = server.URL()
	return fmt.Sprintf("%s, private, %s", server.Version(), where), e.openPool(ctx)
}

// watchDatabase reports to Failed that the private server ended by itself.
func (e *Environment) watchDatabase(server *embedded.Server) {
	ended, closing, watched := server.Ended(), make(chan struct{}), make(chan struct{})
	go func() { // the environment's Close waits for it
		defer close(watched)
		select {
		case <-ended:
			e.failed <- fmt.Errorf("PostgreSQL exited unexpectedly; its log is %s; start countersign dev again", server.LogFile())
		case <-closing:
		}
	}()
	e.onStop(func() {
		close(closing)
		<-watched
	})
}

// openPool opens the pool and the telemetry that API and worker share.
func (e *Environment) openPool(ctx context.Context) error {
	pool, err := postgres.Open(ctx, postgres.Config{URL: e.database, MaxConns: poolConns, Name: "countersign-dev"})
	if err != nil {
		return err
	}
	e.pool = pool
	e.onStop(pool.Close)
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	telemetry.LogErrors(e.cfg.Log)
	watched, err := telemetry.Setup(ctx, telemetry.Config{Service: "countersign-dev"})
	if err != nil {
		return err
	}
	e.watched = watched
	e.onClose(watched.Shutdown)
	return nil
}

// poolConns are enough for the API, the worker and River side by side.
const poolConns = 20

func (e *Environment) migrate(ctx context.Context) (string, error) {
	m, err := postgres.Migrate(ctx, e.database)
	if err != nil {
		return "", err
	}
	if m.From == m.To {
		return fmt.Sprintf("schema %d, as it was", m.To), nil
	}
	return fmt.Sprintf("schema %d, from %d", m.To, m.From), nil
}

// The files of the key that encrypts the credentials of sources, and of the key
// for triage's mail passwords, which is also the COUNTERSIGN_TRIAGE_KEY of a
// triage process outside the environment.
const (
	keyName     = "secret.key"
	mailKeyName = "triage.key"
)

// loadVault returns the vault that encrypts credentials, with the configured
// key, else that of Dir.
func (e *Environment) loadVault() (connection.Cipher, error) {
	if e.cfg.SecretKey != "" {
		return connection.NewCipher(e.cfg.SecretKey)
	}
	key, err := e.loadKey(keyName)
	if err != nil {
		return connection.Cipher{}, err
	}
	vault, err := connection.NewCipher(key)
	return vault, keyError(e.dir, keyName, err)
}

// loadMailCipher returns the cipher of the passwords of mail accounts.
func (e *Environment) loadMailCipher() (account.Cipher, error) {
	key, err := e.loadKey(mailKeyName)
	if err != nil {
		return account.Cipher{}, err
	}
	e.mailKey = key
	mails, err := account.NewCipher(key)
	return mails, keyError(e.dir, mailKeyName, err)
}

// loadKey returns the key in a file of Dir, or a new one, which is written there.
func (e *Environment) loadKey(name string) (string, error) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	key := base64.StdEncoding.EncodeToString(raw)
	if e.cfg.Dir == "" {
		return key, nil
	}
	path := filepath.Join(e.dir, name)
	kept, err := os.ReadFile(path)
	switch {
	case err == nil:
		key = strings.TrimSpace(string(kept))
	case errors.Is(err, fs.ErrNotExist):
		err = writeSecret(path, []byte(key))
	}
	if err != nil {
		return "", fmt.Errorf("the key in %s: %w", name, err)
	}
	if key == "" {
		return "", keyError(e.dir, name, errors.New("it is empty"))
	}
	return key, nil
}

func keyError(dir, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s contains no key; restore the key, or delete the file and enter all encrypted secrets again", filepath.Join(dir, name))
}

// writeSecret writes a file atomically that only its owner can read.
func writeSecret(path string, text []byte) error {
	draft := path + ".new"
	if err := os.WriteFile(draft, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
