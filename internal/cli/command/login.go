package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/cli/login"
)

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
	for _, in := range []struct{ env, below string }{
		{configEnv, ""}, {"XDG_CONFIG_HOME", "countersign"}, {"HOME", filepath.Join(".config", "countersign")},
	} {
		if dir := a.Getenv(in.env); dir != "" {
			return login.NewStore(filepath.Join(dir, in.below)), nil
		}
	}
	return login.Store{}, fmt.Errorf("there is no folder to keep a login in: set %s", configEnv)
}

// LoggedIn is the token of a login; empty if there is none, which the API then
// says what to do about.
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
