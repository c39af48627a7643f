package approval_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// fixture is a tenant in which every proposal waits for a person.
type fixture struct {
	t       testing.TB
	db      postgres.Begins
	tenant  envelope.TenantID
	in      *intake.Intake
	service *approval.Service
	woken   *atomic.Int32
}

func fixtureIn(t testing.TB, db postgres.Begins) fixture {
	t.Helper()
	o := fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), woken: new(atomic.Int32)}
	cache := settings.NewCache()
	o.in = intake.New(db, cache, intake.Config{ApprovalWait: time.Hour})
	o.service = approval.New(db, cache, approval.Config{Wake: func() { o.woken.Add(1) }})
	o.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", o.tenant.String(), "t-"+o.tenant.String())
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, o.tenant, catalog.Source{ID: "src", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, o.tenant, "src", listing("as listed"))
	})
	o.mode(envelope.ModeRequireApproval)
	return o
}

func listing(description string) []source.Tool {
	return []source.Tool{
		{Name: "act", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "mail", Description: description, InputSchema: json.RawMessage(`{"type":"object",
			"properties":{"to":{"type":"string","format":"email"},"copies":{"type":"integer","maximum":5},"tags":{"type":"array"}},
			"required":["to"],"additionalProperties":false}`)},
	}
}

func newFixture(t testing.TB) fixture       { return fixtureIn(t, dbtest.Tx(t)) }
func newSharedFixture(t testing.TB) fixture { return fixtureIn(t, dbtest.DB(t)) }

func (o fixture) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.API(o.tenant), func(tx pgx.Tx) error { return fn(o.t.Context(), tx) }); err != nil {
		o.t.Fatal(err)
	}
}

func (o fixture) exec(sql string, args ...any) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(o.t.Context(), sql, args...)
		return err
	}); err != nil {
		o.t.Fatal(err)
	}
}

func one[T any](o fixture, sql string, args ...any) (v T) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(o.t.Context(), sql, args...).Scan(&v)
	}); err != nil {
		o.t.Fatal(err)
	}
	return v
}

func (o fixture) mode(m envelope.Mode) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, o.tenant, "", "*", m, "test")
	})
}

// agent is the token that proposes.
func (o fixture) agent() uuid.UUID { return uuid.UUID(o.tenant) }

func (o fixture) decider(name string) approval.Decider {
	o.t.Helper()
	by := approval.Decider{Tenant: o.tenant, Token: uuid.New(), Name: name, PolicyWrite: true}
	tenanttest.Person(o.t, o.db, o.tenant, by.Token, name)
	return by
}

// person is a decider with all tokens of the name.
func (o fixture) person(name string) approval.Decider {
	by := o.decider(name)
	by.Person = uuid.NewSHA1(uuid.UUID(o.tenant), []byte(name))
	tenanttest.Person(o.t, o.db, o.tenant, by.Person, name)
	return by
}

// review sets the number of approvals that every action needs.
func (o fixture) review(needed int) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, o.tenant, settings.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Approvals: needed}, "test")
	})
}

// grant approves the current version of an envelope.
func (o fixture) grant(by approval.Decider, id envelope.ActionID, note string) error {
	_, err := o.service.Approve(o.t.Context(), by, id, approval.Approval{Note: note})
	return err
}

// propose has n envelopes wait for a person.
func (o fixture) propose(n int) []envelope.ActionID {
	o.t.Helper()
	proposals := make([]*envelope.Proposal, n)
	for i := range proposals {
		proposals[i] = &envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: "act"}, Args: json.RawMessage(`{}`), Approval: envelope.ApprovalRequired}
	}
	answers, err := o.in.Accept(o.t.Context(), intake.Submitter{Tenant: o.tenant, Token: o.agent(), Name: "agent", Names: identity.EveryName()}, proposals)
	if err != nil {
		o.t.Fatal(err)
	}
	ids := make([]envelope.ActionID, n)
	for i, a := range answers {
		if a.Err != nil || a.Approval == envelope.ApprovalAuto {
			o.t.Fatalf("Accept = %+v", a)
		}
		ids[i] = a.Action
	}
	return ids
}

// message returns a proposal to send a mail, in a session, without a request
// for approval.
func message(args string) *envelope.Proposal {
	return &envelope.Proposal{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: "mail"}, Args: json.RawMessage(args), SessionID: "s1", AutomationID: "nightly",
	}
}

// accept accepts one proposal.
func (o fixture) accept(p *envelope.Proposal) intake.Answer {
	o.t.Helper()
	answers, err := o.in.Accept(o.t.Context(), intake.Submitter{Tenant: o.tenant, Token: o.agent(), Name: "agent", Names: identity.EveryName()}, []*envelope.Proposal{p})
	if err != nil || answers[0].Err != nil {
		o.t.Fatalf("Accept = %+v, %v", answers, err)
	}
	return answers[0]
}

// told counts the items about an envelope in events of a kind.
func (o fixture) told(kind audit.Kind, id envelope.ActionID) int {
	o.t.Helper()
	return one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind = $1 AND i ->> 'action_id' = $2", string(kind), id.String())
}

// overdue lets the time to decide run out.
func (o fixture) overdue(ids ...envelope.ActionID) {
	o.t.Helper()
	for _, id := range ids {
		o.exec("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE action_id = $1", id.String())
	}
}

func (o fixture) view(id envelope.ActionID) (v outbox.View) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		views, err := outbox.Get(ctx, tx, o.tenant, id)
		if err == nil && len(views) != 1 {
			o.t.Fatalf("Get(%s) has %d envelopes", id, len(views))
		}
		if len(views) == 1 {
			v = views[0]
		}
		return err
	})
	return v
}

// scheduled returns the number of outbox rows of an envelope.
func (o fixture) scheduled(id envelope.ActionID) int {
	o.t.Helper()
	return one[int](o, "SELECT count(1)::int FROM outbox WHERE action_id = $1", id.String())
}

// decisions counts the events that record a decision about an envelope.
func (o fixture) decisions(id envelope.ActionID) int {
	o.t.Helper()
	return one[int](o, "SELECT count(1)::int FROM events, jsonb_array_elements(items) i WHERE kind IN ('decided', 'undone') AND i ->> 'action_id' = $1", id.String())
}

// isOf reports whether an actor is a token of a name.
func isOf(a envelope.Actor, name string) bool {
	is, token, _ := a.Parts()
	return is == name && token != uuid.Nil
}
