package simulate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// stage is a tenant with the source shop. It has the tools refund, which is
// allowed, and mail, which writes to /to.
type stage struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
	cache  *settings.Cache
	in     *intake.Intake
}

func newStage(t testing.TB, db postgres.Begins) stage {
	t.Helper()
	cache := settings.NewCache()
	s := stage{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: cache, in: intake.New(db, cache, intake.Config{})}
	s.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", s.tenant.String(), "t-"+s.tenant.String())
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, s.tenant, catalog.Source{ID: "shop", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, s.tenant, "shop", tools("refund", "mail"))
	})
	s.mode("shop:*", envelope.ModeAllow)
	return s
}

func tools(names ...string) []source.Tool {
	all := make([]source.Tool, len(names))
	for i, name := range names {
		all[i] = source.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{},"to":{"type":"string"}}}`)}
	}
	return all
}

func (s stage) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	s.t.Helper()
	if err := postgres.InTx(s.t.Context(), s.db, postgres.API(s.tenant), func(tx pgx.Tx) error { return fn(s.t.Context(), tx) }); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) exec(sql string, args ...any) {
	s.t.Helper()
	if err := postgres.InTx(s.t.Context(), s.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), sql, args...)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) mode(pattern string, mode envelope.Mode) {
	s.t.Helper()
	s.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, s.tenant, "", pattern, mode, "ada")
	})
}

// call returns a proposal of a tool of the shop.
func call(tool, args string) *envelope.Proposal {
	return &envelope.Proposal{Type: envelope.TypeExec, ExternalID: uuid.NewString(), Tool: envelope.Tool{Source: "shop", Name: tool}, Args: json.RawMessage(args)}
}

func (s stage) by() intake.Submitter {
	return intake.Submitter{Tenant: s.tenant, Name: "agent", Names: identity.EveryName()}
}

// propose proposes the calls and returns the actions.
func (s stage) propose(by intake.Submitter, calls ...*envelope.Proposal) []envelope.ActionID {
	s.t.Helper()
	answers, err := s.in.Accept(s.t.Context(), by, calls)
	if err != nil {
		s.t.Fatal(err)
	}
	ids := make([]envelope.ActionID, len(answers))
	for i, a := range answers {
		if a.Err != nil {
			s.t.Fatalf("proposal %d: %v", i, a.Err)
		}
		ids[i] = a.Action
	}
	return ids
}

// refunds proposes n refunds, of the amounts 0, 1, 2, ….
func (s stage) refunds(n int) []envelope.ActionID {
	s.t.Helper()
	var ids []envelope.ActionID
	for from := 0; from < n; from += intake.MaxBatch {
		var calls []*envelope.Proposal
		for i := from; i < min(n, from+intake.MaxBatch); i++ {
			calls = append(calls, call("refund", fmt.Sprintf(`{"amount":%d,"to":"u%d@example.org"}`, i, i)))
		}
		ids = append(ids, s.propose(s.by(), calls...)...)
	}
	return ids
}

// lately selects all actions of a test.
func lately() simulate.Request {
	now := time.Now()
	return simulate.Request{From: now.Add(-time.Hour), To: now.Add(time.Hour), Tool: policy.Key{Source: "*", Action: "*"}, Limit: simulate.MaxPage}
}

func (s stage) read(req simulate.Request) *simulate.Page {
	s.t.Helper()
	var page *simulate.Page
	err := postgres.InTx(s.t.Context(), s.db, postgres.API(s.tenant).ReadOnly(), func(tx pgx.Tx) (err error) {
		page, err = simulate.Read(s.t.Context(), tx, s.cache, s.tenant, req)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return page
}

func never() bool { return false }

// rule returns a change that adds one rule about arguments.
func rule(expression string, mode envelope.Mode) settings.Document {
	return settings.Document{Rules: []settings.Rule{{ID: "r", Pattern: "shop:*", Expression: expression, Mode: string(mode), Reason: "why", Enabled: true}}}
}

// counting counts the statements of its transactions.
type counting struct {
	postgres.Begins
	n *atomic.Int64
}

func (c counting) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := c.Begins.BeginTx(ctx, opts)
	return countingTx{tx, c.n}, err
}

type countingTx struct {
	pgx.Tx
	n *atomic.Int64
}

func (c countingTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.n.Add(1)
	return c.Tx.Exec(ctx, sql, args...)
}

func (c countingTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.n.Add(1)
	return c.Tx.Query(ctx, sql, args...)
}

func (c countingTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	c.n.Add(1)
	return c.Tx.QueryRow(ctx, sql, args...)
}
