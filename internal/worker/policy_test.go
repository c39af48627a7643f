package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/worker/background"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// proposeIn proposes a call in a session with arguments, and returns the
// answer.
func (y *fixture) proposeIn(session, args string) intake.Answer {
	y.t.Helper()
	answers, err := y.in.Accept(y.t.Context(), intake.Submitter{Tenant: y.tenant, Name: "agent", Names: identity.EveryName()}, []*envelope.Proposal{{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolKeyed, Source: "fake"}, Args: json.RawMessage(args), SessionID: session,
	}})
	if err != nil || answers[0].Err != nil {
		y.t.Fatal(err, answers[0].Err)
	}
	return answers[0]
}

// rule makes calls with a large n need approval.
func (y *fixture) rule(expression, mode string) {
	y.t.Helper()
	cache := settings.NewCache()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := cache.Current(ctx, tx, y.tenant)
		if err != nil {
			return err
		}
		return settings.PutRule(ctx, tx, snap, settings.Rule{ID: "large", Pattern: "*", Expression: expression, Mode: mode, Enabled: true}, "ada")
	})
}

// allow grants calls of a session with n = 200.
func (y *fixture) allow(session string) uuid.UUID { return y.allowBy(session, uuid.Nil) }

func (y *fixture) allowBy(session string, person uuid.UUID) uuid.UUID {
	y.t.Helper()
	cache := settings.NewCache()
	var id uuid.UUID
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := cache.Current(ctx, tx, y.tenant)
		if err != nil {
			return err
		}
		tool, _ := snap.Tool(policy.Key{Source: "fake", Action: toolKeyed})
		id, err = settings.PutGrant(ctx, tx, y.tenant, settings.Grant{
			Tool: tool.Key, Digest: tool.Binding, Session: session, Pins: map[string]json.RawMessage{"": json.RawMessage(`{"n":200}`)}, Person: person, For: time.Hour,
		})
		return err
	})
	return id
}

// TestRulesAreRecheckedBeforeTheCall changes policy between a proposal and its
// call. The arguments are then read from the database, and have the same
// meaning.
func TestRulesAreRecheckedBeforeTheCall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   string
		change func(y *fixture)
		phase  envelope.Phase
		code   string
	}{
		"a rule denies":         {`{"n":2e2}`, func(y *fixture) { y.rule("args.n > 199", "deny") }, envelope.PhaseSkipped, "policy_denied"},
		"a rule asks":           {`{"n":200.0}`, func(y *fixture) { y.rule("args.n == 200", "require_approval") }, envelope.PhasePending, ""},
		"a rule does not apply": {`{"n":200}`, func(y *fixture) { y.rule("args.n > 200", "deny") }, envelope.PhaseCompleted, ""},
		"a rule fails":          {`{"n":"200"}`, func(y *fixture) { y.rule("args.n > 200", "require_approval") }, envelope.PhasePending, ""},
		"a rule cannot be read": {`{}`, func(y *fixture) {
			y.exec("INSERT INTO policy_rules (tenant_id, rule_id, key, expression, mode) VALUES ($1, 'r', '*', '?', 'deny')", y.tenant.String())
		}, envelope.PhaseSkipped, "policy_denied"},
		"the session may not": {`{}`, func(y *fixture) {
			y.exec("INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-1', '*', 'deny', now() + interval '1 hour')", y.tenant.String())
		}, envelope.PhaseSkipped, "policy_denied"},
		"the session might not": {`{}`, func(y *fixture) {
			y.exec("INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-1', '*', 'deny', now() - interval '1 second')", y.tenant.String())
		}, envelope.PhaseCompleted, ""},
		"another session may not": {`{}`, func(y *fixture) {
			y.exec("INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-2', '*', 'deny', now() + interval '1 hour')", y.tenant.String())
		}, envelope.PhaseCompleted, ""},
		"it is switched off": {`{}`, func(y *fixture) {
			y.exec("INSERT INTO preferences (tenant_id, key) VALUES ($1, '*')", y.tenant.String())
		}, envelope.PhaseSkipped, "policy_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			id := y.proposeIn("s-1", test.args).Action
			test.change(y)

			y.work()

			v := y.view(id)
			code := ""
			if e := v.Envelope.Result.Error; e != nil {
				code = e.Code
			}
			if v.Phase != test.phase || code != test.code {
				t.Errorf("it is %s (%q), want %s (%q)", v.Phase, code, test.phase, test.code)
			}
		})
	}
}

// TestGrantThatEndsBeforeTheCallAllowsNothing proposes under a grant that has
// ended before the claim.
func TestGrantThatEndsBeforeTheCallAllowsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end   func(y *fixture, id uuid.UUID)
		phase envelope.Phase
	}{
		"it holds":                      {func(*fixture, uuid.UUID) {}, envelope.PhaseCompleted},
		"another change while it holds": {func(y *fixture, _ uuid.UUID) { y.allow("s-2") }, envelope.PhaseCompleted},
		"it is revoked": {func(y *fixture, id uuid.UUID) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error { return settings.RevokeGrant(ctx, tx, y.tenant, id, "ada") })
		}, envelope.PhasePending},
		"it expires": {func(y *fixture, _ uuid.UUID) {
			y.exec("ALTER TABLE grants DISABLE TRIGGER USER")
			y.exec("UPDATE grants SET created_at = created_at - interval '2 hours', expires_at = expires_at - interval '2 hours'")
			y.exec("ALTER TABLE grants ENABLE TRIGGER USER")
			if err := background.ExpirePolicy(y.t.Context(), y.db); err != nil {
				y.t.Fatal(err)
			}
		}, envelope.PhasePending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.rule("args.n > 100", "require_approval")
			id := y.allow("s-1")
			got := y.proposeIn("s-1", `{"n":200}`)
			other := y.proposeIn("s-2", `{"n":200}`)
			if got.Mode != envelope.ModeAllow || got.Source != "org_default+arguments:large+grant:"+id.String() || other.Mode != envelope.ModeRequireApproval {
				t.Fatalf("proposed under a grant: %+v; without: %+v", got, other)
			}
			test.end(y, id)

			y.work()

			if v := y.view(got.Action); v.Phase != test.phase {
				t.Errorf("it is %s, want %s", v.Phase, test.phase)
			}
		})
	}
}

// TestGrantOfTheProposerDoesNotAllowAtTheCall makes grants after an action was
// allowed, and before its call.
func TestGrantOfTheProposerDoesNotAllowAtTheCall(t *testing.T) {
	t.Parallel()
	proposer := uuid.New()
	for name, test := range map[string]struct {
		maker uuid.UUID
		phase envelope.Phase
	}{
		"of the proposer":   {proposer, envelope.PhasePending},
		"of somebody else":  {uuid.New(), envelope.PhaseCompleted},
		"of nobody we know": {uuid.Nil, envelope.PhaseCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			answers, err := y.in.Accept(t.Context(), intake.Submitter{Tenant: y.tenant, Token: uuid.New(), Person: proposer, Name: "ada"}, []*envelope.Proposal{{
				Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolKeyed, Source: "fake"}, Args: json.RawMessage(`{"n":200}`),
			}})
			if err != nil || answers[0].Mode != envelope.ModeAllow {
				t.Fatalf("Accept = %+v, %v", answers, err)
			}
			y.rule("args.n > 100", "require_approval")
			y.allowBy("", test.maker)

			y.work()

			if v := y.view(answers[0].Action); v.Phase != test.phase {
				t.Errorf("it is %s, want %s", v.Phase, test.phase)
			}
		})
	}
}

func TestLeaderExpiresSessionModes(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("INSERT INTO session_modes (tenant_id, session_id, key, mode, expires_at) VALUES ($1, 's-1', '*', 'deny', now() - interval '1 second')", y.tenant.String())
	before := one[int64](y, "SELECT config_version FROM tenants WHERE tenant_id = $1", y.tenant.String())

	y.run(y.fleet(y.src, config("w1")))
	y.until("SELECT NOT EXISTS (SELECT 1 FROM session_modes)")

	if after := one[int64](y, "SELECT config_version FROM tenants WHERE tenant_id = $1", y.tenant.String()); after <= before {
		t.Errorf("the version went from %d to %d, want it to go up", before, after)
	}
}
