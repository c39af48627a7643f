package rest_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const signingSecret = "8f742231b10e8888abcd99yyyzzz85a5"

// channel is a tenant whose approvals are requested in Slack, with a pending
// action whose message was sent.
type channel struct {
	*tenantFixture
	id, path string
	relay    *subscription.Relay
	// action is the pending action; value is the value of its message's buttons,
	// and ts the message's timestamp.
	action, value, ts string
}

func newChannel(t *testing.T) *channel {
	t.Helper()
	f := newFixture(t).tenant("channel")
	f.workspace("team")
	ch := &channel{tenantFixture: f}
	var made shownSubscription
	f.admin.send("PUT", "/api/v1/subscriptions/ops", object{"source": "team", "channel": "C1", "signing_secret": signingSecret}).wants(t, 200).into(t, &made)
	ch.id, ch.path = made.ID, made.Interactions
	cache := settings.NewCache()
	ch.relay = subscription.NewRelay(f.db, cache, intake.New(f.db, cache, intake.Config{}), "", slog.New(slog.DiscardHandler))
	ch.operator("U1", "T1", identity.RoleOperator, "ada")
	ch.announce()
	return ch
}

// operator registers a person as a Slack user.
func (ch *channel) operator(user, team string, role identity.Role, name string) uuid.UUID {
	ch.t.Helper()
	var id uuid.UUID
	ch.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		root := identity.Principal{Tenant: ch.tenantFixture.id, Role: identity.RoleOwner}
		id, err = identity.NewOperator(ctx, tx, root, identity.Operator{Name: name, RoleSet: role, SlackTeam: team, SlackUser: user}, time.Now())
		return err
	})
	return id
}

// announce has an action wait, and its message sent.
func (ch *channel) announce() {
	ch.t.Helper()
	ch.action = ch.agent.propose("write")
	sent := ch.message("slack.message.send", ch.action)
	ch.ts = sent.id
	ch.value = sent.value(ch.t)
	ch.post()
}

// outgoing is a message that goes to Slack.
type outgoing struct{ id, args string }

func (o outgoing) value(t testing.TB) string {
	t.Helper()
	var args struct {
		Blocks []struct{ Elements []struct{ Value string } }
	}
	if err := json.Unmarshal([]byte(o.args), &args); err != nil {
		t.Fatal(err)
	}
	for _, b := range args.Blocks {
		for _, e := range b.Elements {
			if e.Value != "" {
				return e.Value
			}
		}
	}
	t.Fatalf("no button in %s", o.args)
	return ""
}

// message relays until there is a message with a tool that holds a text. Events are
// relayed once every older transaction of the server has ended, also those of tests of
// other packages.
func (ch *channel) message(tool, holds string) outgoing {
	ch.t.Helper()
	ctx, cancel := context.WithTimeout(ch.t.Context(), 3*time.Minute)
	defer cancel()
	for {
		for _, o := range ch.messages(tool) {
			if strings.Contains(o.args, holds) {
				return o
			}
		}
		if _, err := ch.relay.Step(ctx); err != nil {
			ch.t.Fatalf("waiting for %s with %q: %v", tool, holds, err)
		}
	}
}

func (ch *channel) messages(tool string) []outgoing {
	ch.t.Helper()
	var all []outgoing
	ch.inTx(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT action_id::text, args::text FROM actions WHERE source_id = 'team' AND tool_name = $1 ORDER BY action_id", tool)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (o outgoing, err error) { return o, r.Scan(&o.id, &o.args) })
		return err
	})
	return all
}

// post handles the requests to Slack, and forwards every other request.
func (ch *channel) post() {
	ch.t.Helper()
	err := postgres.InTx(ch.t.Context(), ch.db, postgres.Worker(), func(tx pgx.Tx) error {
		ctx := ch.t.Context()
		due, err := outbox.DueBuckets(ctx, tx, 0, 100)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		got, err := outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Minute)
		if err != nil {
			return err
		}
		var batch []outbox.Settlement
		event := audit.Event{Tenant: ch.tenantFixture.id, Kind: audit.Settled, Actor: "worker/test"}
		for _, it := range got {
			if it.Source != "team" {
				batch = append(batch, outbox.Release(it))
				continue
			}
			s := outbox.Settlement{Lease: it.Lease, Status: envelope.StatusSent, Attempt: 1, Took: time.Millisecond, Result: json.RawMessage(`{"ok":true}`)}
			if it.Tool == slack.ToolMessageSend {
				s.ProviderID = "C1/" + it.Action.String()
			}
			batch = append(batch, s)
			event.Items = append(event.Items, audit.Item{Action: it.Action, Status: s.Status, Attempt: 1})
		}
		if _, err := outbox.Settle(ctx, tx, outbox.Mark{}, "worker/test", batch); err != nil {
			return err
		}
		return audit.Write(ctx, tx, event)
	})
	if err != nil {
		ch.t.Fatal(err)
	}
}

// press is the body of a button that was pressed.
func (ch *channel) press(button, user, team string) form {
	return pressIn(button, user, team, ch.value, "C1", ch.ts)
}

func pressIn(button, user, team, value, in, ts string) form {
	payload, err := json.Marshal(object{
		"type": "block_actions", "team": object{"id": "T1"}, "user": object{"id": user, "team_id": team}, "trigger_id": "trigger-" + user,
		"container": object{"channel_id": in, "message_ts": ts},
		"actions":   []object{{"action_id": button, "value": value}},
	})
	if err != nil {
		panic(err)
	}
	return form(url.Values{"payload": {string(payload)}}.Encode())
}

// signed sends a request as Slack does.
func (ch *channel) signed(path string, body form, secret string, at time.Time) answer {
	ch.t.Helper()
	ts := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + ts + ":" + string(body)))
	return (&client{fixture: ch.fixture}).send("POST", path, body, "X-Slack-Request-Timestamp", ts, "X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}

func (ch *channel) slack(body form) answer {
	ch.t.Helper()
	return ch.signed(ch.path, body, signingSecret, time.Now())
}

func (ch *channel) shown() shown {
	ch.t.Helper()
	return ch.admin.send("GET", path(ch.action), nil).wants(ch.t, 200).action(ch.t)
}

func TestAButtonApprovesAsTheOperator(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	body := ch.press("countersign_approve", "U1", "T1")

	ch.slack(body).wants(t, 200)

	if a := ch.shown(); a.Phase != "approved" || a.Decision == nil || !strings.HasPrefix(a.Decision.By, "ada (operator ") {
		t.Errorf("after the button: %+v", a)
	}
	ch.message("slack.message.update", "Approved")

	// A button pressed twice, or a replayed request, has no further effect.
	ch.slack(body).wants(t, 200)
	ch.slack(ch.press("countersign_deny", "U1", "T1")).wants(t, 200)
	if a := ch.shown(); a.Phase != "approved" {
		t.Errorf("after the button twice: %+v", a)
	}
	ch.message("slack.message.ephemeral", "no decision is needed any more")
}

func TestAButtonDenies(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)

	ch.slack(ch.press("countersign_deny", "U1", "T1")).wants(t, 200)

	if a := ch.shown(); a.Phase != "denied" || !strings.HasPrefix(a.Decision.By, "ada (operator ") || a.Decision.Note != "denied in Slack" {
		t.Errorf("after the button: %+v", a.Decision)
	}
	ch.message("slack.message.update", "Denied")
}

func TestDenialReasonReachesTheAgent(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	ch.slack(ch.press("countersign_reason", "U1", "T1")).wants(t, 200)
	var asked struct {
		TriggerID string `json:"trigger_id"`
		View      struct {
			PrivateMetadata string `json:"private_metadata"`
			CallbackID      string `json:"callback_id"`
		}
	}
	if err := json.Unmarshal([]byte(ch.message("slack.view.open", ch.action).args), &asked); err != nil || asked.TriggerID != "trigger-U1" {
		t.Fatalf("the form = %+v, %v", asked, err)
	}
	submit := func(user string) form {
		payload, err := json.Marshal(object{
			"type": "view_submission", "team": object{"id": "T1"}, "user": object{"id": user},
			"view": object{
				"callback_id": asked.View.CallbackID, "private_metadata": asked.View.PrivateMetadata,
				"state": object{"values": object{"countersign_reason": object{"countersign_reason": object{"value": "too dear"}}}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return form(url.Values{"payload": {string(payload)}}.Encode())
	}

	refused := ch.slack(submit("U9")).wants(t, 200)
	taken := ch.slack(submit("U1")).wants(t, 200)
	late := ch.slack(submit("U1")).wants(t, 200)

	if !strings.Contains(string(refused.body), "not an operator") || len(taken.body) > 0 || !strings.Contains(string(late.body), "no decision is needed") {
		t.Errorf("answers to the form: %s, %s, %s", refused.body, taken.body, late.body)
	}
	var seen struct{ Decision struct{ Note string } }
	ch.agent.send("GET", path(ch.action), nil).wants(t, 200).into(t, &seen)
	if seen.Decision.Note != "too dear" {
		t.Errorf("the agent reads %q", seen.Decision.Note)
	}
}

func TestForgedSlackRequests(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	body := ch.press("countersign_approve", "U1", "T1")
	now := time.Now()
	for name, a := range map[string]answer{
		"not signed":           (&client{fixture: ch.fixture}).send("POST", ch.path, body),
		"with a token instead": ch.admin.send("POST", ch.path, body),
		"another app's secret": ch.signed(ch.path, body, "another-secret-another-secret", now),
		"an old one":           ch.signed(ch.path, body, signingSecret, now.Add(-6*time.Minute)),
		"from the future":      ch.signed(ch.path, body, signingSecret, now.Add(6*time.Minute)),
		"no such subscription": ch.signed("/api/v1/slack/interactions/"+uuid.NewString(), body, signingSecret, now),
		"no subscription":      ch.signed("/api/v1/slack/interactions/x", body, signingSecret, now),
		"without a secret":     ch.signed("/api/v1/slack/interactions/"+uuid.Nil.String(), body, "", now),
	} {
		if a.status != 401 {
			t.Errorf("%s: %d, want 401: %s", name, a.status, a.body)
		}
	}
	ch.slack(form("payload=%7B")).wants(t, 400)
	ch.slack(form("x=y")).wants(t, 400)
	ch.admin.send("PUT", "/api/v1/subscriptions/ops", object{"source": "team", "channel": "C1", "enabled": false}).wants(t, 200)
	ch.signed(ch.path, body, signingSecret, now).wants(t, 401)
	if a := ch.shown(); a.Phase != "pending" {
		t.Errorf("a request that Slack did not send had it %s", a.Phase)
	}
}

// TestButtonsThatDoNotCount: the person, the place and the shown version must
// all be right. Only the person who pressed the button gets the reason.
func TestButtonsThatDoNotCount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		press func(ch *channel) form
		why   string
	}{
		"somebody unknown":         {func(ch *channel) form { return ch.press("countersign_approve", "U9", "T1") }, "not an operator"},
		"the user of another team": {func(ch *channel) form { return ch.press("countersign_approve", "U1", "T2") }, "not an operator"},
		"somebody who may only read": {func(ch *channel) form {
			ch.operator("U2", "T1", identity.RoleViewer, "bo")
			return ch.press("countersign_approve", "U2", "T1")
		}, "may not decide"},
		"somebody who was disabled": {func(ch *channel) form {
			id := ch.operator("U3", "T1", identity.RoleOperator, "cy")
			ch.admin.send("PUT", "/api/v1/operators/"+id.String(), object{"name": "cy", "role_set": "operator", "slack_team": "T1", "slack_user": "U3", "disabled": true}).wants(ch.t, 200)
			return ch.press("countersign_approve", "U3", "T1")
		}, "not an operator"},
		// An agent that may write to Slack could put our button below a text
		// of its own.
		"in another message": {func(ch *channel) form { return pressIn("countersign_approve", "U1", "T1", ch.value, "C1", "1712.0001") }, "unknown message"},
		"in another channel": {func(ch *channel) form { return pressIn("countersign_approve", "U1", "T1", ch.value, "C2", ch.ts) }, "unknown message"},
		"below another action": {func(ch *channel) form {
			first, ts := ch.value, ch.ts
			ch.announce()
			ch.value, first = first, ch.value
			_ = ts // the message of the first, with the button of the second
			return pressIn("countersign_approve", "U1", "T1", first, "C1", ts)
		}, "unknown message"},
		"an action that is none": {func(ch *channel) form {
			return pressIn("countersign_approve", "U1", "T1", uuid.NewString()+".x", "C1", ch.ts)
		}, "unknown message"},
		"after an edit": {func(ch *channel) form {
			ch.admin.send("POST", path(ch.action, "/edit"), object{"args": object{"to": "someone else"}}).wants(ch.t, 200)
			return ch.press("countersign_approve", "U1", "T1")
		}, "has changed"},
		"after an edit, to deny": {func(ch *channel) form {
			ch.admin.send("POST", path(ch.action, "/edit"), object{"args": object{"to": "someone else"}}).wants(ch.t, 200)
			return ch.press("countersign_deny", "U1", "T1")
		}, "has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ch := newChannel(t)

			ch.slack(test.press(ch)).wants(t, 200)

			if a := ch.shown(); a.Phase != "pending" {
				t.Errorf("it is %s", a.Phase)
			}
			if got := ch.messages("slack.message.ephemeral"); len(got) != 1 || !strings.Contains(got[0].args, test.why) {
				t.Errorf("ephemeral messages = %+v, want one that says %q", got, test.why)
			}
		})
	}
}

// TestNobodyApprovesTheirOwnProposalInSlack: the operator behind the token that
// proposed is the same person there.
func TestNobodyApprovesTheirOwnProposalInSlack(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	id := ch.operator("U4", "T1", identity.RoleOperator, "dee")
	own := ch.holder(identity.Grant{Name: "dee's", Role: identity.RoleOperator, Operator: id})
	ch.agent = own
	ch.announce()

	ch.slack(ch.press("countersign_approve", "U4", "T1")).wants(t, 200)

	if a := ch.shown(); a.Phase != "pending" {
		t.Errorf("it is %s", a.Phase)
	}
}

// TestOneOfManyButtonsWins: if several people press a button concurrently, one
// decides.
func TestOneOfManyButtonsWins(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	for _, user := range []string{"U5", "U6", "U7"} {
		ch.operator(user, "T1", identity.RoleOperator, user)
	}
	var wg sync.WaitGroup
	for _, button := range []string{"countersign_approve", "countersign_deny"} {
		for _, user := range []string{"U1", "U5", "U6", "U7"} {
			body := ch.press(button, user, "T1")
			wg.Go(func() {
				if a := ch.slack(body); a.status != 200 {
					t.Errorf("%s by %s = %d: %s", button, user, a.status, a.body)
				}
			})
		}
	}
	wg.Wait()

	var decisions int
	ch.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT count(1) FROM events WHERE kind = 'decided'").Scan(&decisions)
	})
	if a := ch.shown(); decisions != 1 || a.Phase != "approved" && a.Phase != "denied" {
		t.Errorf("%d decisions, and it is %s; want one", decisions, a.Phase)
	}
}

func TestTwoPeopleAgreeInSlack(t *testing.T) {
	t.Parallel()
	ch := newChannel(t)
	ch.operator("U5", "T1", identity.RoleOperator, "eve")
	ch.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, ch.tenantFixture.id, settings.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Approvals: 2}, "test")
	})
	ch.announce()

	ch.slack(ch.press("countersign_approve", "U1", "T1")).wants(t, 200)
	ch.slack(ch.press("countersign_approve", "U1", "T1")).wants(t, 200)
	if a := ch.shown(); a.Phase != "pending" {
		t.Fatalf("one person twice, and it is %s", a.Phase)
	}
	ch.message("slack.message.update", "Approvals: 1 of 2")
	ch.slack(ch.press("countersign_approve", "U5", "T1")).wants(t, 200)

	if a := ch.shown(); a.Phase != "approved" {
		t.Errorf("after two people it is %s", a.Phase)
	}
}
