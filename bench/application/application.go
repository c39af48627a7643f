// Package application makes database logins that may propose in SQL, as
// applications have them.
package application

import (
	"context"
	"fmt"
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
	name, password := "bench_"+strings.ReplaceAll(uuid.NewString(), "-", ""), uuid.NewString()
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'"); err != nil {
			return err
		}
		_, err := identity.BindDBLogin(ctx, tx, tenant, identity.DBLogin{Login: name, MaxWaiting: identity.DefaultMaxWaiting})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("bind a database login: %w", err)
	}
	config := pool.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = name, password, 2
	if app, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, nil, err
	}
	return app, func() {
		app.Close()
		// The server may have ended, and the login with it.
		_, _ = pool.Exec(context.WithoutCancel(ctx), "DROP ROLE IF EXISTS "+name)
	}, nil
}
