package reversal_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is a tenant with the source "crm". Policy allows all of its tools.
type fixture struct {
	t       testing.TB
	db      postgres.Begins
	tenant  envelope.TenantID
	in      *intake.Intake
	service *reversal.Service
}

// tools returns the tools of "crm". create is reversed by delete, link by
// unlink; delete declares create as its own reversal.
func tools() []source.Tool {
	object := func(properties, required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
	}
	return []source.Tool{
		{Name: "create", Effect: envelope.EffectKeyed, InputSchema: object(`"name":{"type":"string"}`, `"name"`)},
		{Name: "delete", Effect: envelope.EffectKeyed, InputSchema: object(`"id":{"type":"string"}`, `"id"`)},
		{Name: "archive", Effect: envelope.EffectKeyed, InputSchema: object(`"id":{"type":"string"}`, `"id"`)},
		{Name: "find", Effect: envelope.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{ReadOnly: true}},
		{Name: "send", Effect: envelope.EffectOnce, InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
}

func newFixture(t testing.TB) *fixture       { return fixtureIn(t, dbtest.Tx(t)) }
func newSharedFixture(t testing.TB) *fixture { return fixtureIn(t, dbtest.DB(t)) }

func fixtureIn(t testing.TB, db postgres.Begins) *fixture {
	t.Helper()
	f := &fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	f.in, f.service = f.services()
	err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name, session_pending_max, session_minute_max) VALUES ($1, $2, 0, 0)", f.tenant.String(), "t-"+f.tenant.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, f.tenant, "crm", tools()); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.tenant, "", "*", envelope.ModeAllow, "test")
	})
	f.declare("create", "delete", `{"id":"$outputs/id"}`)
	f.declare("delete", "create", `{"name":"$inputs/id"}`)
	return f
}

// services returns another process's services for the same tenant.
func (f *fixture) services() (*intake.Intake, *reversal.Service) {
	cache := settings.NewCache()
	in := intake.New(f.db, cache, intake.Config{ApprovalWait: time.Hour})
	return in, reversal.New(f.db, cache, in)
}

func (f *fixture) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error { return fn(f.t.Context(), tx) }); err != nil {
		f.t.Fatal(err)
	}
}

func key(tool string) policy.Key { return policy.Key{Source: "crm", Action: tool} }

// declare declares the reversal of a tool; none with by "".
func (f *fixture) declare(tool, by, args string) {
	f.t.Helper()
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		var d catalog.Description
		if by != "" {
			d.Reversal = &catalog.Reversal{Tool: key(by), Args: json.RawMessage(args)}
		}
		return catalog.DescribeTool(ctx, tx, f.tenant, key(tool), d)
	})
}

func (f *fixture) mode(automation, pattern string, mode envelope.Mode) {
	f.t.Helper()
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, f.tenant, automation, pattern, mode, "test")
	})
}

func (f *fixture) by() intake.Submitter {
	return intake.Submitter{Tenant: f.tenant, Token: uuid.UUID(f.tenant), Name: "ada"}
}

// propose proposes a call, for an employee.
func (f *fixture) propose(tool, args string, employee envelope.EmployeeID) envelope.ActionID {
	f.t.Helper()
	by := f.by()
	by.Names = identity.EveryName()
	answers, err := f.in.Accept(f.t.Context(), by, []*envelope.Proposal{{
		Type: envelope.TypeExec, Tool: envelope.Tool{Source: "crm", Name: tool}, Args: json.RawMessage(args), SessionID: "s-one", EmployeeID: employee,
	}})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	return answers[0].Action
}

// outcome is the outcome of a call.
type outcome struct {
	status envelope.Status
	result string
	reason outbox.Reason
}

func (o outcome) answer() json.RawMessage {
	if o.result == "" {
		return nil
	}
	return json.RawMessage(o.result)
}

var (
	sent    = outcome{status: envelope.StatusSent, result: `{"id":"c-1"}`}
	refused = outcome{status: envelope.StatusFailed, reason: outbox.Refused}
	unknown = outcome{status: envelope.StatusUnknown, reason: outbox.Unknown}
)

// settle claims everything that is due and ends it. It returns the calls.
func (f *fixture) settle(out outcome) (calls []string) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.Worker(), func(tx pgx.Tx) error {
		ctx := f.t.Context()
		due, err := outbox.DueBuckets(ctx, tx, 0, 100)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		items, err := outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Minute)
		if err != nil {
			return err
		}
		var settled []outbox.Settlement
		for _, it := range items {
			calls = append(calls, it.Tool+" "+strings.ReplaceAll(string(it.Args), " ", ""))
			settled = append(settled, outbox.Settlement{
				Lease: it.Lease, Status: out.status, Attempt: it.Attempt + 1, DeadLetter: out.reason, Took: time.Millisecond, Result: out.answer(),
			})
		}
		_, err = outbox.Settle(ctx, tx, outbox.Mark{}, "worker/test", settled)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return calls
}

// done proposes a call and ends it.
func (f *fixture) done(tool, args string, out outcome) envelope.ActionID {
	f.t.Helper()
	id := f.propose(tool, args, envelope.EmployeeID{})
	f.settle(out)
	return id
}

func (f *fixture) request(ids ...envelope.ActionID) reversal.Request {
	return reversal.Request{By: f.by(), Actions: ids, Sees: func(string) bool { return true }}
}

// revert reverts an action.
func (f *fixture) revert(id envelope.ActionID) reversal.Answer {
	f.t.Helper()
	answers, err := f.service.Revert(f.t.Context(), f.request(id))
	if err != nil {
		f.t.Fatal(err)
	}
	return answers[0]
}

// made reverts an action that has no reversal in effect, and returns the new
// one.
func (f *fixture) made(id envelope.ActionID) envelope.ActionID {
	f.t.Helper()
	a := f.revert(id)
	if a.Err != nil || a.Known || a.Action == (envelope.ActionID{}) {
		f.t.Fatalf("Revert = %+v, want a new reversal", a)
	}
	return a.Action
}

func (f *fixture) view(id envelope.ActionID) (v outbox.View) {
	f.t.Helper()
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		views, err := outbox.Get(ctx, tx, f.tenant, id)
		if err == nil && len(views) == 1 {
			v = views[0]
		}
		return err
	})
	return v
}

func (f *fixture) discard(id envelope.ActionID) {
	f.t.Helper()
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.Discard(ctx, tx, f.tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "ada"})
		return err
	})
}

// refusedFor returns the pointer and the rule of a refusal.
func refusedFor(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Pointer != "" {
		return e.Pointer + " " + e.Rule
	}
	if e, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return e.Fields[0].Pointer + " " + string(e.Fields[0].Rule)
	}
	return ""
}

// driver returns a driver of the tenant's workflows, and its service.
func (f *fixture) driver() (*workflow.Driver, *workflow.Service) {
	return workflow.NewDriver(f.db, f.in, slog.New(slog.DiscardHandler)), workflow.NewService(f.db, settings.NewCache(), func() {})
}
