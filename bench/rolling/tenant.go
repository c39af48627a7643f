package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// tenant is the tenant of a run, and its agent's token.
type tenant struct {
	db    *pgxpool.Pool
	id    envelope.TenantID
	token string
}

// newTenant makes a tenant with the tool, which may be called without asking.
func newTenant(ctx context.Context, url, tool string) (*tenant, error) {
	db, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return nil, err
	}
	w := &tenant{db: db}
	if err := w.setUp(ctx, tool); err != nil {
		db.Close()
		return nil, fmt.Errorf("set up the tenant: %w", err)
	}
	return w, nil
}

func (w *tenant) setUp(ctx context.Context, tool string) error {
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: tool})
	if err != nil {
		return err
	}
	err = postgres.InTx(ctx, w.db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		if w.id, err = identity.NewTenant(ctx, tx, "rolling-"+uuid.NewString()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE tenants SET session_pending_max = 0, session_minute_max = 0 WHERE tenant_id = $1", w.id.String()); err != nil {
			return err
		}
		if err := catalog.PutSource(ctx, tx, w.id, catalog.Source{ID: toolSource, Kind: catalog.KindMCP, Config: config, Enabled: true}); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, w.id, "", "*", envelope.ModeAllow, "rolling"); err != nil {
			return err
		}
		made, err := identity.Issue(ctx, tx, w.id, identity.Grant{Name: "agent", Role: identity.RoleAgent}, time.Now())
		w.token = made.Token.Text()
		return err
	})
	if err != nil {
		return err
	}
	live := connection.NewPool(connection.Config{Networks: safehttp.Loopback()})
	defer live.Close()
	if err := connection.NewRefresher(w.db, settings.NewCache(), live, slog.New(slog.DiscardHandler)).Refresh(ctx, w.id, toolSource); err != nil {
		return err
	}
	return postgres.InTx(ctx, w.db, postgres.Admin(), func(tx pgx.Tx) error {
		for name, effect := range map[string]envelope.Effect{toolOnce: envelope.EffectOnce, toolKeyed: envelope.EffectKeyed} {
			if err := catalog.ConfigureTool(ctx, tx, w.id, policy.Key{Source: toolSource, Action: name}, catalog.Overrides{Effect: effect}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *tenant) close() { w.db.Close() }

// settled waits until every action has ended.
func (w *tenant) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return process.Poll(ctx, 200*time.Millisecond, func() (done bool, err error) {
		err = w.db.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM outbox o WHERE o.tenant_id = $1)", w.id.String()).Scan(&done)
		return done, err
	})
}

// end is the end of an action: its status, and the number of attempts that
// ended it.
type end struct {
	status string
	ends   int
}

// read reads how every action ended, by external id.
func (w *tenant) read(ctx context.Context) (map[string]end, error) {
	const query = `
SELECT a.external_id, coalesce(max(e.status) FILTER (WHERE e.status <> 'pending'), ''), count(1) FILTER (WHERE e.status <> 'pending')
FROM actions a
LEFT JOIN tool_executions e ON e.tenant_id = a.tenant_id AND e.action_id = a.action_id
WHERE a.tenant_id = $1
GROUP BY a.external_id`
	all := make(map[string]end)
	rows, _ := w.db.Query(ctx, query, w.id.String()) // ForEachRow returns the error
	var id string
	var e end
	_, err := pgx.ForEachRow(rows, []any{&id, &e.status, &e.ends}, func() error { all[id] = e; return nil })
	return all, err
}

func externalID(n int) string { return fmt.Sprintf("rolling-%d", n) }
