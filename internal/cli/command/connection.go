package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/login"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// setUpFor bounds how long setting something up may take.
const setUpFor = 30 * time.Second

// DatabaseURL is where the database is, which only commands that set one up
// ask for.
func (a *App) DatabaseURL() (string, error) {
	if url := a.Getenv(DatabaseEnv); url != "" {
		return url, nil
	}
	return "", Misuse("%s is required: the URL of the database, such as postgres://user:password@host:5432/database", DatabaseEnv)
}

// InDatabase does something in a transaction of the scope of a tenant, or of
// the whole database without one.
func (a *App) InDatabase(ctx context.Context, tenant string, do func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error) error {
	ctx, cancel := context.WithTimeout(ctx, setUpFor)
	defer cancel()
	pool, err := a.OpenDatabase(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	var id envelope.TenantID
	scope := postgres.Admin()
	if tenant != "" {
		if id, err = Tenant(ctx, pool, tenant); err != nil {
			return fmt.Errorf("%w; `countersign tenant create` makes one", err)
		}
		scope = postgres.API(id)
	}
	return postgres.InTx(ctx, pool, scope, func(tx pgx.Tx) error { return do(ctx, tx, id) })
}

// Tenant returns the id of the tenant with a name.
func Tenant(ctx context.Context, db postgres.Begins, name string) (envelope.TenantID, error) {
	return postgres.InTxReturning(ctx, db, postgres.Admin(), func(tx pgx.Tx) (envelope.TenantID, error) { return identity.TenantByName(ctx, tx, name) })
}

// OpenDatabase returns a pool of one open connection to the database of
// DATABASE_URL. The caller closes it.
func (a *App) OpenDatabase(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := a.DatabaseURL()
	if err != nil {
		return nil, err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 1, Name: "countersign"})
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, setUpFor)
	defer cancel()
	if err := pool.Ping(ping); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the database of %s does not answer; check the address, and that it is running", DatabaseEnv)
	}
	return pool, nil
}

// The environment variables of a login.
const (
	configEnv   = "COUNTERSIGN_CONFIG"
	IssuerEnv   = "COUNTERSIGN_ISSUER"
	ClientIDEnv = "COUNTERSIGN_CLIENT_ID"
)

// Server is the API's address as logins are kept by it.
func (a *App) Server() string { return strings.TrimSuffix(a.URL, "/") }

// Logins is where they are kept.
func (a *App) Logins() (login.Store, error) {
	dir, err := a.ConfigDir()
	if err != nil {
		return login.Store{}, fmt.Errorf("no folder for logins: %w", err)
	}
	return login.NewStore(dir), nil
}

// ConfigDir returns the folder of the user's configuration of this command line.
func (a *App) ConfigDir() (string, error) {
	for _, in := range []struct{ env, below string }{
		{configEnv, ""}, {"XDG_CONFIG_HOME", "countersign"}, {"HOME", filepath.Join(".config", "countersign")},
	} {
		if dir := a.Getenv(in.env); dir != "" {
			return filepath.Join(dir, in.below), nil
		}
	}
	return "", fmt.Errorf("set %s", configEnv)
}

// LoggedIn is the token of a login. It may be empty: the API then answers with
// a remedy.
func (a *App) LoggedIn(ctx context.Context) (string, error) {
	store, err := a.Logins()
	if err != nil {
		return "", nil // nobody can have logged in
	}
	is, err := store.Fresh(ctx, a.Server(), time.Now())
	switch {
	case errors.Is(err, login.ErrNone):
		return "", nil
	case errors.Is(err, login.ErrOver):
		return "", fmt.Errorf("%w; log in again with `countersign login`", err)
	}
	return is.Token, err
}
