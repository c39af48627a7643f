package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func TestWebhookReceivesInvocationEvents(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.propose("ask", `{}`, 1) // events before the subscription are not sent
	h.seen()
	s := h.toHooks()
	id := h.propose("ask", `{"to":"bo","api_key":"hush"}`, 1)[0]
	h.approve(id, "")
	h.settle(sent)

	h.relayAll()

	got := h.deliveries(s)
	if diff := cmp.Diff([]string{subscription.ApprovalRequest, subscription.ApprovalResult, subscription.Completed}, types(got)); diff != "" {
		t.Fatalf("messages (-want +got):\n%s", diff)
	}
	for _, d := range got {
		if d.source != "hooks" || d.tool != "deliver" || d.approval != "auto" || !strings.HasPrefix(d.external, "message:"+s.ID.String()+":") {
			t.Errorf("delivery = %+v", d)
		}
		if d.args.Data["invocation_id"] != id.String() || d.args.Data["integration"] != "mail" || d.args.Data["action"] != "ask" {
			t.Errorf("%s = %v", d.args.Type, d.args.Data)
		}
		if strings.Contains(d.raw, "hush") {
			t.Errorf("a message holds a secret: %s", d.raw)
		}
	}
	request, result, done := got[0].args.Data, got[1].args.Data, got[2].args.Data
	if request["params"].(map[string]any)["to"] != "bo" || request["expires_at"] == nil || request["risk_level"] == nil {
		t.Errorf("request = %v", request)
	}
	if result["status"] != "granted" || !strings.HasPrefix(result["decided_by"].(string), "ada (token ") || result["note"] != "fine" {
		t.Errorf("result = %v", result)
	}
	if done["status"] != "completed" || done["result"].(map[string]any)["ok"] != true {
		t.Errorf("completion = %v", done)
	}
}

func TestNoMessagesAboutMessages(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	all := subscription.Kinds()[3:] // every transition
	one, two := h.toHooks(all...), h.subscribe(subscription.Subscription{Name: "two", Source: "hooks", Kinds: all})

	h.propose("free", `{}`, 3)
	for range 5 {
		h.relayAll()
		h.settle(sent)
	}
	h.relayAll()

	for _, s := range []subscription.Subscription{one, two} {
		if diff := cmp.Diff([]string{"proposed", "proposed", "proposed", "settled", "settled", "settled"}, types(h.deliveries(s))); diff != "" {
			t.Errorf("messages of %s (-want +got):\n%s", s.Name, diff)
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	with := func(name string, change func(*subscription.Subscription)) subscription.Subscription {
		return h.subscribe(subscription.Subscription{Name: name, Source: "hooks", Kinds: []string{"proposed", "configured"}}, change)
	}
	subs := map[string]subscription.Subscription{
		"all":  with("all", func(*subscription.Subscription) {}),
		"free": with("free", func(s *subscription.Subscription) { s.Tool = "mail:free" }),
		"ask":  with("ask", func(s *subscription.Subscription) { s.Tool = "*:ask" }),
		"none": with("none", func(s *subscription.Subscription) { s.Tool = "team:*" }),
		"high": with("high", func(s *subscription.Subscription) { s.MinRisk = envelope.RiskHigh }),
		"off":  with("off", func(s *subscription.Subscription) { s.Enabled = false }),
	}
	h.propose("free", `{}`, 2)
	h.propose("ask", `{}`, 1)
	h.as(func(ctx context.Context, tx pgx.Tx) error {
		return audit.Write(ctx, tx, audit.Event{Tenant: h.tenant, Kind: audit.Configured, Actor: "bo", Items: []audit.Item{{Subject: "x"}}})
	})

	h.relayAll()

	for name, want := range map[string]int{"all": 4, "free": 2, "ask": 1, "none": 0, "high": 0, "off": 0} {
		if got := len(h.deliveries(subs[name])); got != want {
			t.Errorf("%s was told %d times, want %d", name, got, want)
		}
	}
}

// TestManyEventsAreProposedInBatches: ten thousand events, several processes, each
// message once and in a bounded number of transactions.
func TestManyEventsAreProposedInBatches(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	const n = 3000
	h.propose("free", `{}`, n)

	var steps atomic.Int32
	var g errgroup.Group
	for range 3 {
		relay := h.newRelay(h.db)
		g.Go(func() error {
			for {
				more, err := relay.Step(t.Context())
				if err != nil || !more {
					return err
				}
				steps.Add(1)
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	h.relayAll()

	const told = "SELECT count(1) FROM actions WHERE automation_id = $1"
	automation := settings.SubscriptionAutomation(s.ID)
	if got := one[int](h, told, automation); got != n {
		t.Errorf("%d messages were proposed, want %d", got, n)
	}
	if got := one[int](h, "SELECT count(DISTINCT args -> 'data' ->> 'action_id') FROM actions WHERE automation_id = $1", automation); got != n {
		t.Errorf("messages are about %d actions, want %d", got, n)
	}
	if got := steps.Load(); got > n/100+50 {
		t.Errorf("it took %d steps", got)
	}
}

// flaky is a database whose commits succeed but return an error.
type flaky struct{ postgres.Begins }

func (f flaky) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := f.Begins.BeginTx(ctx, opts)
	return flakyTx{tx}, err
}

type flakyTx struct{ pgx.Tx }

var errKilled = errors.New("killed")

func (f flakyTx) Commit(ctx context.Context) error {
	_ = f.Rollback(ctx) // as a process that ends does
	return errKilled
}

// TestDeadWorkerRepeatsNoMessage: between proposing and moving on there
// is nothing, since both are committed together.
func TestDeadWorkerRepeatsNoMessage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	h.propose("free", `{}`, 5)
	h.seen() // until then a step may find no event
	dying := h.newRelay(flaky{h.db})

	found, err := dying.Step(t.Context())
	if !found || !errors.Is(err, errKilled) {
		t.Fatalf("Step: %v, %v; want the error of its commit", found, err)
	}
	if got := len(h.deliveries(s)); got != 0 {
		t.Fatalf("%d messages of a transaction that was lost", got)
	}
	h.relayAll()

	if got := len(h.deliveries(s)); got != 5 {
		t.Errorf("%d messages, want 5", got)
	}
}

// TestResetCursorRepeatsNoMessage, should a cursor be put back.
func TestResetCursorRepeatsNoMessage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed", subscription.ApprovalRequest)
	h.propose("free", `{}`, 3)
	h.propose("ask", `{}`, 2)
	h.relayAll()

	h.exec("UPDATE subscriptions SET cursor_txid = '0', cursor_event = 0, cursor_item = 0")
	h.relayAll()

	if got := h.deliveries(s); len(got) != 5 {
		t.Errorf("%d messages, want 5: %v", len(got), types(got))
	}
}

func TestRelayResumesWithinAnEvent(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	h.propose("free", `{}`, 450) // one event
	var steps []int

	for len(h.deliveries(s)) < 450 {
		before := len(h.deliveries(s))
		if _, err := h.relay.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if more := len(h.deliveries(s)) - before; more > 0 {
			steps = append(steps, more)
		}
	}

	if diff := cmp.Diff([]int{200, 200, 50}, steps); diff != "" {
		t.Errorf("messages per step (-want +got):\n%s", diff)
	}
}

func TestADeletedSubscriptionDeliversNothingMore(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *fixture, s subscription.Subscription){
		"deleted": func(h *fixture, s subscription.Subscription) {
			h.as(func(ctx context.Context, tx pgx.Tx) error { return subscription.Delete(ctx, tx, h.tenant, s.Name) })
		},
		"off": func(h *fixture, s subscription.Subscription) {
			h.subscribe(s, func(s *subscription.Subscription) { s.Enabled = false })
		},
		"made anew": func(h *fixture, s subscription.Subscription) {
			h.as(func(ctx context.Context, tx pgx.Tx) error { return subscription.Delete(ctx, tx, h.tenant, s.Name) })
			s.ID = uuid.Nil
			h.subscribe(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			s := h.toHooks("proposed")
			h.propose("free", `{}`, 1)
			h.relayAll()

			end(h, s)

			var decision string
			h.as(func(ctx context.Context, tx pgx.Tx) error {
				current, err := h.cache.Current(ctx, tx, h.tenant)
				if err != nil {
					return err
				}
				for _, tool := range current.Tools() {
					d := current.Decide(tool, settings.Proposal{Automation: settings.SubscriptionAutomation(s.ID), Risk: envelope.RiskLow})
					if d.Mode != envelope.ModeDeny {
						decision += fmt.Sprintf("%s is %s by %s; ", tool.Key, d.Mode, d.Source)
					}
				}
				return nil
			})
			if decision != "" {
				t.Errorf("what still waits would go out: %s", decision)
			}
		})
	}
}

// TestASubscriptionMayDeliverAndNothingElse: deliveries pass in spite of the
// tenant's rules for agents, employees' trust and arguments, and the
// subscription can propose nothing else.
func TestASubscriptionMayDeliverAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks()
	h.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := settings.PutMode(ctx, tx, h.tenant, "", "*", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		if err := limits.PutEmployee(ctx, tx, h.tenant, limits.Employee{Trust: policy.TrustNone}, "test"); err != nil {
			return err
		}
		current, err := h.cache.Current(ctx, tx, h.tenant)
		if err != nil {
			return err
		}
		rule := settings.Rule{ID: "dear", Pattern: "*", Expression: "args.amount > 100", Mode: "deny", Enabled: true}
		if err := settings.PutRule(ctx, tx, current, rule, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, h.tenant, "", "hooks:deliver", envelope.ModeDeny, "test")
	})

	h.as(func(ctx context.Context, tx pgx.Tx) error {
		current, err := h.cache.Current(ctx, tx, h.tenant)
		if err != nil {
			return err
		}
		for _, tool := range current.Tools() {
			got := current.Decide(tool, settings.Proposal{Automation: settings.SubscriptionAutomation(s.ID), Risk: envelope.RiskLow}).Mode
			want := envelope.ModeDeny
			if tool.Key.String() == "hooks:deliver" {
				want = envelope.ModeAllow
			}
			if got != want {
				t.Errorf("under the subscription %s is %s, want %s", tool.Key, got, want)
			}
		}
		return nil
	})
}

func TestGoneReceiverIsDisabled(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	h.propose("free", `{}`, 2)
	h.relayAll()
	h.settle(func(it outbox.Item, s *outbox.Settlement) {
		if it.Tool == "deliver" {
			s.Status, s.Code, s.DeadLetter = envelope.StatusFailed, source.CodeGone, outbox.Refused
		}
	})

	h.relayAll()

	var off subscription.Subscription
	h.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		off, err = subscription.Get(ctx, tx, h.tenant, s.Name)
		return err
	})
	if off.Enabled || !strings.Contains(off.DisabledReason, "410") {
		t.Errorf("subscription = %+v, want it off", off)
	}
	if got := one[int](h, "SELECT count(1) FROM events WHERE kind = 'configured' AND items::text LIKE '%subscription out disabled%'"); got != 1 {
		t.Errorf("%d events say so, want 1", got)
	}

	// Once enabled again, earlier failures do not disable it.
	h.subscribe(s)
	h.propose("free", `{}`, 1)
	h.relayAll()
	if got := h.deliveries(s); len(got) != 3 {
		t.Errorf("%d messages, want one more: %v", len(got), types(got))
	}
}

// TestUnavailableReceiverDelaysEvents: they stay events instead of becoming
// envelopes that wait.
func TestUnavailableReceiverDelaysEvents(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	h.propose("free", `{}`, 3)
	h.exec(`INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, worker) VALUES ($1, 'hooks', 'open', 'failures', now() + interval '1 day', 'w')`, h.tenant.String())

	for range 20 {
		if more, err := h.relay.Step(t.Context()); more || err != nil {
			t.Fatalf("Step = %t, %v, want nothing to do", more, err)
		}
	}
	if got := h.deliveries(s); len(got) != 0 {
		t.Errorf("%d messages to a receiver that is down", len(got))
	}

	h.exec("UPDATE breakers SET open_until = now()")
	h.relayAll()
	if got := h.deliveries(s); len(got) != 3 {
		t.Errorf("%d messages when it is back, want 3", len(got))
	}
}

func TestDisabledSourceHoldsOnlyItsOwnMessages(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toTeam("proposed")
	other := h.toHooks("proposed")
	h.exec("UPDATE sources SET enabled = false WHERE source_id = 'team'")
	h.propose("free", `{}`, 1)

	for len(h.deliveries(other)) == 0 || one[int](h, "SELECT count(1) FROM subscriptions WHERE held_until > now()") == 0 {
		if _, err := h.relay.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.deliveries(s); len(got) != 0 {
		t.Errorf("%d messages of a source that is off", len(got))
	}

	h.exec("UPDATE sources SET enabled = true")
	h.exec("UPDATE subscriptions SET held_until = now()")
	for len(h.deliveries(s)) == 0 {
		if _, err := h.relay.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A new subscription to a source that was just created, as in the
// documentation.
func TestUnlistedSourceIsRetriedSoon(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toHooks("proposed")
	h.exec("DELETE FROM tools WHERE source_id = 'hooks'")
	h.propose("free", `{}`, 1)

	for one[int](h, "SELECT count(1) FROM subscriptions WHERE held_until IS NOT NULL") == 0 {
		if _, err := h.relay.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	if got := h.deliveries(s); len(got) != 0 {
		t.Errorf("%d messages of a source that is not listed", len(got))
	}
	if one[bool](h, "SELECT held_until > now() + interval '5 seconds' FROM subscriptions") {
		t.Error("it is held for long")
	}
}

func TestTenantsReceiveOnlyTheirEvents(t *testing.T) {
	t.Parallel()
	one := newFixture(t)
	two := newFixtureIn(t, one.db)
	mine, theirs := one.toHooks("proposed"), two.toHooks("proposed")
	one.propose("free", `{}`, 1)

	one.relayAll()

	if got, other := one.deliveries(mine), two.deliveries(theirs); len(got) != 1 || len(other) != 0 {
		t.Errorf("%d messages, and %d to another tenant; want 1 and 0", len(got), len(other))
	}
}

func TestKindsAreKnown(t *testing.T) {
	t.Parallel()
	if all := subscription.Kinds(); len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("kinds %q are not each there once", all)
	}
	for _, kind := range []string{catalog.KindWebhook, catalog.KindSlack} {
		for _, k := range subscription.DefaultKinds(kind) {
			if !slices.Contains(subscription.Kinds(), k) {
				t.Errorf("the default kind %s is none", k)
			}
		}
	}
}
