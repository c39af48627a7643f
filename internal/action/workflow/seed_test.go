package workflow_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is a tenant with the source "crm". Policy allows everything except
// ask, which needs approval, and no, which it denies.
type fixture struct {
	t       testing.TB
	db      postgres.Begins
	tenant  envelope.TenantID
	cache   *settings.Cache
	in      *intake.Intake
	service *workflow.Service
	driver  *workflow.Driver
}

// tools returns the tools of "crm". A created contact is deleted by the id in
// the answer, a link by its arguments.
func tools() []source.Tool {
	object := func(properties string, required string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
	}
	return []source.Tool{
		{Name: "create", Effect: envelope.EffectKeyed, InputSchema: object(`"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}`, `"name"`),
			OutputSchema: object(`"id":{"type":"string"},"age":{"type":"integer"},"more":{"type":"object"}`, `"id"`)},
		{Name: "delete", Effect: envelope.EffectKeyed, InputSchema: object(`"id":{"type":"string"}`, `"id"`)},
		{Name: "link", Effect: envelope.EffectOnce, InputSchema: object(`"from":{"type":"string"},"to":{"type":"string"}`, `"from","to"`)},
		{Name: "unlink", Effect: envelope.EffectOnce, InputSchema: object(`"from":{"type":"string"},"to":{"type":"string"}`, `"from","to"`)},
		{Name: "find", Effect: envelope.EffectRead, InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{ReadOnly: true}},
		{Name: "send", Effect: envelope.EffectOnce, InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "ask", Effect: envelope.EffectOnce, InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "no", Effect: envelope.EffectOnce, InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "either", Effect: envelope.EffectOnce, InputSchema: json.RawMessage(
			`{"type":"object","properties":{"kind":{"type":"string"}},"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["a"]},{"properties":{"kind":{"const":"b"}},"required":["b"]}]}`)},
	}
}

func fixtureIn(t testing.TB, db postgres.Begins) *fixture {
	t.Helper()
	o := &fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: settings.NewCache()}
	o.in = intake.New(db, o.cache, intake.Config{ApprovalWait: time.Hour})
	o.service = workflow.NewService(db, o.cache, func() {})
	o.driver = o.newDriver(db)
	o.exec("INSERT INTO tenants (tenant_id, name, session_pending_max, session_minute_max) VALUES ($1, $2, 0, 0)", o.tenant.String(), "t-"+o.tenant.String())
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, o.tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, o.tenant, "crm", tools()); err != nil {
			return err
		}
		for pattern, mode := range map[string]envelope.Mode{"*": envelope.ModeAllow, "crm:ask": envelope.ModeRequireApproval, "crm:no": envelope.ModeDeny} {
			if err := settings.PutMode(ctx, tx, o.tenant, "", pattern, mode, "test"); err != nil {
				return err
			}
		}
		return nil
	})
	o.reversal("create", "delete", `{"id":"$outputs/id"}`)
	o.reversal("link", "unlink", `{"from":"$inputs/from","to":"$inputs/to"}`)
	o.reversal("ask", "unlink", `{"from":"x","to":"y"}`)
	return o
}

// newDriver is another process's driver for the same tenant.
func (o *fixture) newDriver(db postgres.Begins) *workflow.Driver {
	return workflow.NewDriver(db, intake.New(db, settings.NewCache(), intake.Config{ApprovalWait: time.Hour}), slog.New(slog.DiscardHandler))
}

func newFixture(t testing.TB) *fixture       { return fixtureIn(t, dbtest.Tx(t)) }
func newSharedFixture(t testing.TB) *fixture { return fixtureIn(t, dbtest.DB(t)) }

func (o *fixture) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.API(o.tenant), func(tx pgx.Tx) error { return fn(o.t.Context(), tx) }); err != nil {
		o.t.Fatal(err)
	}
}

func (o *fixture) exec(sql string, args ...any) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(o.t.Context(), sql, args...)
		return err
	}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *fixture) reversal(tool, by, args string) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.DescribeTool(ctx, tx, o.tenant, key(tool), catalog.Description{
			Reversal: &catalog.Reversal{Tool: key(by), Args: json.RawMessage(args)},
		})
	})
}

func key(tool string) policy.Key { return policy.Key{Source: "crm", Action: tool} }

func (o *fixture) mode(automation, pattern string, mode envelope.Mode) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, o.tenant, automation, pattern, mode, "test")
	})
}

func (o *fixture) by() intake.Submitter {
	return intake.Submitter{Tenant: o.tenant, Token: uuid.UUID(o.tenant), Name: "agent", Names: identity.EveryName()}
}

// steps makes a request of tools and inputs in turn.
func steps(atomic bool, toolsAndInputs ...string) workflow.Request {
	r := workflow.Request{Atomic: atomic, ExternalID: uuid.NewString()}
	for i := 0; i < len(toolsAndInputs); i += 2 {
		r.Steps = append(r.Steps, workflow.StepRequest{Tool: "crm:" + toolsAndInputs[i], Inputs: json.RawMessage(toolsAndInputs[i+1])})
	}
	return r
}

func (o *fixture) submit(r workflow.Request) workflow.ID {
	o.t.Helper()
	id, known, err := o.service.Submit(o.t.Context(), o.by(), r)
	if err != nil || known {
		o.t.Fatalf("Submit = known %t, %v", known, err)
	}
	return id
}

func (o *fixture) get(id workflow.ID) (b *workflow.Workflow) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		b, err = workflow.Get(ctx, tx, o.tenant, id)
		return err
	})
	return b
}

// sweep advances workflows until none can be advanced.
func (o *fixture) sweep() {
	o.t.Helper()
	for {
		n, _, err := o.driver.Sweep(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// call is a scheduled call, by its external id.
type call struct {
	tool, external string
	args           string
}

// outcome is the outcome of a call.
type outcome struct {
	status  envelope.Status
	result  string
	letter  outbox.Reason
	attempt int
}

var (
	sent    = outcome{status: envelope.StatusSent, result: `{"id":"c-1","age":7}`}
	failed  = outcome{status: envelope.StatusFailed, letter: outbox.Refused}
	unknown = outcome{status: envelope.StatusUnknown, letter: outbox.Unknown}
)

func answering(result string) outcome { return outcome{status: envelope.StatusSent, result: result} }

// work claims due rows and settles each call by the result of how. It returns
// the calls in the order of their claims.
func (o *fixture) work(how func(call) outcome) []call {
	o.t.Helper()
	items, calls := o.claim()
	o.settle(items, calls, how)
	return calls
}

// claim claims due rows and marks them as started.
func (o *fixture) claim() (items []outbox.Item, calls []call) {
	o.t.Helper()
	o.fleet(func(ctx context.Context, tx pgx.Tx) error {
		due, err := outbox.DueBuckets(ctx, tx, 0, 100)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		if items, err = outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Minute); err != nil {
			return err
		}
		for _, it := range items {
			c := call{tool: it.Tool, args: strings.ReplaceAll(string(it.Args), " ", "")}
			row := tx.QueryRow(ctx, "SELECT coalesce(external_id, '') FROM actions WHERE tenant_id = $1 AND action_id = $2", it.Tenant.String(), it.Action.String())
			if err := row.Scan(&c.external); err != nil {
				return err
			}
			calls = append(calls, c)
		}
		return nil
	})
	return items, calls
}

// settle ends calls that were claimed.
func (o *fixture) settle(items []outbox.Item, calls []call, how func(call) outcome) {
	o.t.Helper()
	var workflow []outbox.Settlement
	for i, it := range items {
		out := how(calls[i])
		s := outbox.Settlement{
			Lease: it.Lease, Status: out.status, Attempt: it.Attempt + 1 + out.attempt, DeadLetter: out.letter, Took: time.Millisecond,
			Result: redact.JSONTruncated(json.RawMessage(out.result), redact.DefaultLimit),
		}
		if out.letter != "" {
			s.Code, s.Message, s.Result = "tool_error", "the tool refused", nil
		}
		workflow = append(workflow, s)
	}
	o.fleet(func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Settle(ctx, tx, outbox.Mark{}, "worker/test", workflow)
		return err
	})
}

func (o *fixture) fleet(fn func(ctx context.Context, tx pgx.Tx) error) {
	o.t.Helper()
	if err := postgres.InTx(o.t.Context(), o.db, postgres.Worker(), func(tx pgx.Tx) error { return fn(o.t.Context(), tx) }); err != nil {
		o.t.Fatal(err)
	}
}

// run drives and works until nothing is left to do, and returns the calls.
func (o *fixture) run(how func(call) outcome) []call {
	o.t.Helper()
	var all []call
	for {
		o.sweep()
		calls := o.work(how)
		if len(calls) == 0 {
			return all
		}
		all = append(all, calls...)
	}
}

// names are the tools of calls.
func names(calls []call) (tools []string) {
	for _, c := range calls {
		tools = append(tools, c.tool)
	}
	return tools
}

// stands formats the states of a workflow's steps.
func stands(b *workflow.Workflow) string {
	words := []string{string(b.State) + ":"}
	for _, s := range b.Steps {
		words = append(words, string(s.State))
	}
	return strings.Join(words, " ")
}

func (o *fixture) wants(id workflow.ID, want string) *workflow.Workflow {
	o.t.Helper()
	b := o.get(id)
	if got := stands(b); got != want {
		o.t.Fatalf("the workflow stands at %q (%s: %s), want %q", got, b.Code, b.Message, want)
	}
	return b
}
