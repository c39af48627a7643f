// Package application makes database logins that may propose in SQL, as
// applications and triage have them.
package application

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Connect makes a login that is bound to a tenant, and returns connections of it.
// done closes them and removes the login. The pool is of a superuser.
func Connect(ctx context.Context, pool *pgxpool.Pool, tenant envelope.TenantID) (app *pgxpool.Pool, done func(), err error) {
	user, drop, err := Login(ctx, pool, tenant, "", identity.DBLogin{MaxWaiting: identity.DefaultMaxWaiting})
	if err != nil {
		return nil, nil, err
	}
	config := pool.Config()
	config.ConnConfig.User, config.MaxConns = user.Username(), 2
	config.ConnConfig.Password, _ = user.Password()
	if app, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		drop()
		return nil, nil, err
	}
	return app, func() {
		app.Close()
		drop()
	}, nil
}

// Login makes a login with a name of its own that is bound to a tenant. options are
// those of CREATE ROLE. The pool is of a superuser.
func Login(ctx context.Context, pool *pgxpool.Pool, tenant envelope.TenantID, options string, is identity.DBLogin) (user *url.Userinfo, drop func(), err error) {
	password := uuid.NewString()
	is.Login = "bench_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE ROLE "+is.Login+" LOGIN PASSWORD '"+password+"' "+options); err != nil {
			return err
		}
		_, err := identity.BindDBLogin(ctx, tx, tenant, is)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("bind a database login: %w", err)
	}
	return url.UserPassword(is.Login, password), func() {
		// The server may have ended, and the login with it.
		_, _ = pool.Exec(context.WithoutCancel(ctx), "DROP ROLE IF EXISTS "+is.Login)
	}, nil
}
