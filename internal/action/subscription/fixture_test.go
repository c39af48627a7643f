package subscription_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// waitLimit bounds the time that a test waits for an event.
const waitLimit = 3 * time.Minute // on a busy machine too

// fixture is a tenant with agents' tools ("mail": free runs, ask needs
// approval), a receiver ("hooks") and a workspace ("team").
type fixture struct {
	t         testing.TB
	db        *pgxpool.Pool
	tenant    envelope.TenantID
	cache     *settings.Cache
	in        *intake.Intake
	approvals *approval.Service
	relay     *subscription.Relay
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureIn(t, dbtest.DB(t))
}

func newFixtureIn(t testing.TB, db *pgxpool.Pool) *fixture {
	t.Helper()
	h := &fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: settings.NewCache()}
	h.in = intake.New(db, h.cache, intake.Config{ApprovalWait: time.Hour})
	h.approvals = approval.New(db, h.cache, approval.Config{})
	h.relay = h.newRelay(db)
	h.exec("INSERT INTO tenants (tenant_id, name, session_pending_max, session_minute_max) VALUES ($1::uuid, 'fixture-' || $1::text, 0, 0)", h.tenant.String())
	anything := json.RawMessage(`{"type":"object"}`)
	h.source("mail", catalog.KindBuiltin, []source.Tool{
		{Name: "free", InputSchema: anything, Effect: envelope.EffectKeyed}, {Name: "ask", InputSchema: anything, Effect: envelope.EffectKeyed},
	})
	h.source("hooks", catalog.KindWebhook, listed(webhook.New(webhook.Config{
		Name: "hooks", URL: "https://hooks.example.com", Secrets: []rest.Secret{rest.NewSecret("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz")},
	})))
	h.source("team", catalog.KindSlack, listed(slack.New(slack.Config{Name: "team", Token: rest.NewSecret("xoxb-hush")})))
	h.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := settings.PutMode(ctx, tx, h.tenant, "", "mail:free", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, h.tenant, "", "mail:ask", envelope.ModeRequireApproval, "test")
	})
	return h
}

// listed returns the tools of a source with a fixed list.
func listed[S source.Source](src S, err error) func(t testing.TB) []source.Tool {
	return func(t testing.TB) []source.Tool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		tools, err := src.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		return tools
	}
}

// newRelay is another process's.
func (h *fixture) newRelay(db postgres.Begins) *subscription.Relay {
	cache := settings.NewCache()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return subscription.NewRelay(db, cache, intake.New(db, cache, intake.Config{ApprovalWait: time.Hour}), "https://countersign.example.com", log)
}

func (h *fixture) source(id, kind string, tools any) {
	h.t.Helper()
	var all []source.Tool
	switch of := tools.(type) {
	case []source.Tool:
		all = of
	case func(testing.TB) []source.Tool:
		all = of(h.t)
	}
	h.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, h.tenant, catalog.Source{ID: id, Kind: kind, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, h.tenant, id, all)
	})
}

func (h *fixture) as(fn func(ctx context.Context, tx pgx.Tx) error) {
	h.t.Helper()
	if err := postgres.InTx(h.t.Context(), h.db, postgres.API(h.tenant), func(tx pgx.Tx) error { return fn(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.db.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](h *fixture, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.db.QueryRow(h.t.Context(), sql, args...).Scan(&v); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// subscribe makes a subscription, or changes one.
func (h *fixture) subscribe(s subscription.Subscription, change ...func(*subscription.Subscription)) subscription.Subscription {
	h.t.Helper()
	if s.ID == uuid.Nil {
		s.ID = uuid.Must(uuid.NewV7())
	}
	if s.Tool == "" {
		s.Tool, s.MinRisk, s.Enabled = "*", envelope.RiskLow, true
	}
	for _, c := range change {
		c(&s)
	}
	h.as(func(ctx context.Context, tx pgx.Tx) error { return subscription.Put(ctx, tx, h.tenant, s, nil, false) })
	return s
}

func (h *fixture) toHooks(kinds ...string) subscription.Subscription {
	h.t.Helper()
	if kinds == nil {
		kinds = subscription.DefaultKinds(catalog.KindWebhook)
	}
	return h.subscribe(subscription.Subscription{Name: "out", Source: "hooks", Kinds: kinds})
}

func (h *fixture) toTeam(kinds ...string) subscription.Subscription {
	h.t.Helper()
	if kinds == nil {
		kinds = subscription.DefaultKinds(catalog.KindSlack)
	}
	return h.subscribe(subscription.Subscription{Name: "team", Source: "team", Kinds: kinds, Channel: "C1", Link: "https://ops.example.com/actions/"})
}

// propose has agents propose n calls of a tool of mail.
func (h *fixture) propose(tool, args string, n int) []envelope.ActionID {
	h.t.Helper()
	var ids []envelope.ActionID
	for rest := n; rest > 0; rest -= intake.MaxBatch {
		proposals := make([]*envelope.Proposal, min(rest, intake.MaxBatch))
		for i := range proposals {
			proposals[i] = &envelope.Proposal{
				Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: "mail"}, Args: json.RawMessage(args), SessionID: "s1",
			}
		}
		answers, err := h.in.Accept(h.t.Context(), intake.Submitter{Tenant: h.tenant, Token: uuid.UUID(h.tenant), Name: "agent", Names: identity.EveryName()}, proposals)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, a := range answers {
			if a.Err != nil {
				h.t.Fatal(a.Err)
			}
			ids = append(ids, a.Action)
		}
	}
	return ids
}

func (h *fixture) decider() approval.Decider {
	by := approval.Decider{Tenant: h.tenant, Token: uuid.New(), Name: "ada"}
	tenanttest.Person(h.t, h.db, h.tenant, by.Token, by.Name)
	return by
}

func (h *fixture) approve(id envelope.ActionID, etag string) {
	h.t.Helper()
	if _, err := h.approvals.Approve(h.t.Context(), h.decider(), id, approval.Approval{Note: "fine", IfMatch: etag}); err != nil {
		h.t.Fatal(err)
	}
}

// settle claims everything that is due and settles it with end.
func (h *fixture) settle(end func(it outbox.Item, s *outbox.Settlement)) int {
	h.t.Helper()
	n := 0
	err := postgres.InTx(h.t.Context(), h.db, postgres.Worker(), func(tx pgx.Tx) error {
		ctx := h.t.Context()
		due, err := outbox.DueBuckets(ctx, tx, 0, 100)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 1000})
		}
		got, err := outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Minute)
		if err != nil {
			return err
		}
		batch := make([]outbox.Settlement, len(got))
		event := audit.Event{Tenant: h.tenant, Kind: audit.Settled, Actor: "worker/test"}
		for i, it := range got {
			batch[i] = outbox.Settlement{Lease: it.Lease, Status: envelope.StatusSent, Attempt: 1, Took: time.Millisecond, Result: json.RawMessage(`{"ok":true}`)}
			end(it, &batch[i])
			event.Items = append(event.Items, audit.Item{Action: it.Action, Status: batch[i].Status, Attempt: 1, Code: batch[i].Code})
		}
		settled, err := outbox.Settle(ctx, tx, outbox.Mark{}, "worker/test", batch)
		if n = len(settled); err != nil {
			return err
		}
		return audit.Write(ctx, tx, event)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// sent settles every call as completed; messages in Slack also return their
// place.
func sent(it outbox.Item, s *outbox.Settlement) {
	if it.Tool == slack.ToolMessageSend {
		s.ProviderID = "C1/" + it.Action.String()
	}
}

// relayAll relays every event. Open transactions of other tests hold events
// back, so it may take several steps.
func (h *fixture) relayAll() {
	h.t.Helper()
	const behind = `SELECT count(1) FROM subscriptions s WHERE s.enabled AND EXISTS (
		SELECT 1 FROM events e WHERE e.tenant_id = s.tenant_id AND (e.txid, e.event_id) > (s.cursor_txid, s.cursor_event))`
	ctx, cancel := context.WithTimeout(h.t.Context(), waitLimit)
	defer cancel()
	for one[int](h, behind) > 0 {
		if _, err := h.relay.Step(ctx); err != nil {
			h.t.Fatal(err)
		}
		if one[int](h, "SELECT count(1) FROM subscriptions WHERE held_until IS NOT NULL") > 0 {
			h.t.Fatal("a subscription is held")
		}
	}
}

// seen waits until no open transaction hides earlier events.
func (h *fixture) seen() {
	h.t.Helper()
	for one[bool](h, "SELECT EXISTS (SELECT 1 FROM events e WHERE e.txid >= pg_snapshot_xmin(pg_current_snapshot()))") {
		if err := h.t.Context().Err(); err != nil {
			h.t.Fatal(err)
		}
	}
}

// delivery is a message as it was proposed.
type delivery struct {
	id                       envelope.ActionID
	external, source, tool   string
	approval, status, reason string
	args                     struct {
		Type string
		Data map[string]any
		post
	}
	raw string
}

// post is the part of a Slack message that tests compare.
type post struct {
	Channel, TS, Text string
	Blocks            []struct {
		Type     string
		Text     struct{ Type, Text string }
		Fields   []struct{ Type, Text string }
		Elements []struct {
			ActionID string `json:"action_id"`
			Value    string
			URL      string
		}
	}
}

// texts are all texts of a message.
func (p post) texts() []string {
	all := []string{p.Text}
	for _, b := range p.Blocks {
		all = append(all, b.Text.Text)
		for _, f := range b.Fields {
			all = append(all, f.Text)
		}
	}
	return all
}

// buttons returns the values of a message's buttons by id.
func (p post) buttons() map[string]string {
	all := map[string]string{}
	for _, b := range p.Blocks {
		for _, e := range b.Elements {
			all[e.ActionID] = e.Value + e.URL
		}
	}
	return all
}

// deliveries returns the deliveries of a subscription, oldest first.
func (h *fixture) deliveries(s subscription.Subscription) []delivery {
	h.t.Helper()
	var all []delivery
	h.as(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT action_id, coalesce(external_id, ''), source_id, tool_name, approval_state, status, mode_source, args::text
			FROM envelopes WHERE automation_id = $1 ORDER BY action_id`, settings.SubscriptionAutomation(s.ID))
		if err != nil {
			return err
		}
		for rows.Next() {
			var d delivery
			var id uuid.UUID
			if err := rows.Scan(&id, &d.external, &d.source, &d.tool, &d.approval, &d.status, &d.reason, &d.raw); err != nil {
				return err
			}
			d.id = envelope.ActionID(id)
			if err := json.Unmarshal([]byte(d.raw), &d.args); err != nil {
				return err
			}
			all = append(all, d)
		}
		return rows.Err()
	})
	return all
}

func types(all []delivery) []string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.args.Type
	}
	slices.Sort(names)
	return names
}
