package intake_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is the intake of a tenant that has two sources. Both have the tool
// note; only the first has send, which needs a text, and danger.
type fixture struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
	in     *intake.Intake
	woken  *atomic.Int32
}

func fixtureIn(t testing.TB, db postgres.Begins) fixture {
	t.Helper()
	woken := new(atomic.Int32)
	d := fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), woken: woken}
	d.in = intake.New(db, settings.NewCache(), intake.Config{ApprovalWait: time.Hour, Wake: func() { woken.Add(1) }})
	d.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", d.tenant.String(), "t-"+d.tenant.String())
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		for _, id := range []string{"first", "second"} {
			if err := catalog.PutSource(ctx, tx, d.tenant, catalog.Source{ID: id, Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
				return err
			}
		}
		object := json.RawMessage(`{"type":"object"}`)
		note := source.Tool{Name: "note", InputSchema: object, Effect: envelope.EffectKeyed}
		if err := catalog.PutListing(ctx, tx, d.tenant, "first", []source.Tool{
			note,
			{Name: "send", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","maxLength":9}},"required":["text"],"additionalProperties":false}`)},
			{Name: "danger", InputSchema: object, Hints: source.Hints{Destructive: new(true)}},
			{Name: "broken", InputSchema: json.RawMessage(`{"type":"object","$ref":"https://elsewhere.example/schema"}`)},
		}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, d.tenant, "second", []source.Tool{note})
	})
	d.mode("*", envelope.ModeAllow)
	return d
}

func newFixture(t testing.TB) fixture       { return fixtureIn(t, dbtest.Tx(t)) }
func newSharedFixture(t testing.TB) fixture { return fixtureIn(t, dbtest.DB(t)) }

func (d fixture) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	d.t.Helper()
	if err := postgres.InTx(d.t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) error { return fn(d.t.Context(), tx) }); err != nil {
		d.t.Fatal(err)
	}
}

func (d fixture) exec(sql string, args ...any) {
	d.t.Helper()
	if err := postgres.InTx(d.t.Context(), d.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(d.t.Context(), sql, args...)
		return err
	}); err != nil {
		d.t.Fatal(err)
	}
}

func (d fixture) count(sql string, args ...any) (n int) {
	d.t.Helper()
	if err := postgres.InTx(d.t.Context(), d.db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(d.t.Context(), sql, args...).Scan(&n)
	}); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d fixture) mode(pattern string, mode envelope.Mode) {
	d.t.Helper()
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, d.tenant, "", pattern, mode, "test")
	})
}

// bucket makes a bucket without limits.
func (d fixture) bucket(name string) {
	d.t.Helper()
	d.exec("INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)", d.tenant.String(), name)
}

func (d fixture) by() intake.Submitter {
	return intake.Submitter{Tenant: d.tenant, Token: uuid.UUID(d.tenant), Name: "agent", Names: identity.EveryName()}
}

func (d fixture) accept(proposals ...*envelope.Proposal) []intake.Answer {
	d.t.Helper()
	answers, err := d.in.Accept(d.t.Context(), d.by(), proposals)
	if err != nil {
		d.t.Fatal(err)
	}
	if len(answers) != len(proposals) {
		d.t.Fatalf("Accept has %d answers for %d proposals", len(answers), len(proposals))
	}
	return answers
}

func (d fixture) view(id envelope.ActionID) (v outbox.View) {
	d.t.Helper()
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		views, err := outbox.Get(ctx, tx, d.tenant, id)
		if err == nil && len(views) != 1 {
			d.t.Fatalf("Get(%s) has %d envelopes", id, len(views))
		}
		if len(views) == 1 {
			v = views[0]
		}
		return err
	})
	return v
}

// events are of the transaction's own tenant, committed or not.
func (d fixture) events() []audit.Item {
	d.t.Helper()
	var items []audit.Item
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT items FROM events WHERE kind = 'proposed' ORDER BY event_id")
		if err != nil {
			return err
		}
		var some []audit.Item
		_, err = pgx.ForEachRow(rows, []any{&some}, func() error {
			items, some = append(items, some...), nil
			return nil
		})
		return err
	})
	return items
}

func note(external string) *envelope.Proposal {
	return &envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: external, Tool: envelope.Tool{Name: "note", Source: "first"}, Args: json.RawMessage(`{"n":1}`),
	}
}

func call(tool, args string) *envelope.Proposal {
	return &envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: "first"}, Args: json.RawMessage(args)}
}

// newIntakeLike returns another process's intake for the same tenant.
func newIntakeLike(d fixture) *intake.Intake {
	return intake.New(d.db, settings.NewCache(), intake.Config{})
}

// disable switches a source off.
func disable(id string, tenant envelope.TenantID) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: id, Kind: catalog.KindBuiltin})
	}
}
