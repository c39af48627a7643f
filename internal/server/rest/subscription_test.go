package rest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const whsec = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// receiver makes a source of kind webhook.
func (f *tenantFixture) receiver(id string) {
	f.t.Helper()
	f.admin.send("PUT", "/api/v1/sources/"+id, object{
		"kind": "webhook", "config": object{"url": "https://hooks.example.com/in"}, "credentials": object{"values": object{"signing_secret": whsec}},
	}).wants(f.t, 200)
	f.lists(id, func() (source.Source, error) {
		return webhook.New(webhook.Config{Name: id, URL: "https://hooks.example.com/in", Secrets: []rest.Secret{rest.NewSecret(whsec)}})
	})
}

// workspace makes a source of kind slack.
func (f *tenantFixture) workspace(id string) {
	f.t.Helper()
	f.admin.send("PUT", "/api/v1/sources/"+id, object{"kind": "slack", "config": object{}, "credentials": object{"values": object{"token": "xoxb-hush"}}}).wants(f.t, 200)
	f.lists(id, func() (source.Source, error) {
		return slack.New(slack.Config{Name: id, Token: rest.NewSecret("xoxb-hush")})
	})
}

// lists stores the tools that a source lists.
func (f *tenantFixture) lists(id string, open func() (source.Source, error)) {
	f.t.Helper()
	src, err := open()
	if err != nil {
		f.t.Fatal(err)
	}
	tools, err := src.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutListing(ctx, tx, f.id, id, tools) })
}

// subscribed makes a receiver with two subscriptions to it, and names it.
func (f *tenantFixture) subscribed() string {
	f.t.Helper()
	id := "h" + uuid.NewString()[:8]
	f.receiver(id)
	for _, name := range []string{id + ".a", id + ".b"} {
		f.admin.send("PUT", "/api/v1/subscriptions/"+name, object{"source": id}).wants(f.t, 200)
	}
	return id
}

// shownSubscription is the part of a subscription that tests compare.
type shownSubscription struct {
	ID                               string `json:"subscription_id"`
	Name, Source, Tool, Interactions string
	Kinds                            []string
	MinRisk                          string `json:"min_risk"`
	HasSigningSecret                 bool   `json:"has_signing_secret"`
	Enabled                          bool
	UpdatedBy                        string `json:"updated_by"`
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("subscriptions")
	f.receiver("hooks")
	f.workspace("team")

	var made, changed, slacked shownSubscription
	f.admin.send("PUT", "/api/v1/subscriptions/out", object{"source": "hooks"}).wants(t, 200).into(t, &made)
	f.admin.send("PUT", "/api/v1/subscriptions/out", object{"source": "hooks", "kinds": []string{"settled"}, "tool": "mail:*", "min_risk": "high", "enabled": false}).
		wants(t, 200).into(t, &changed)
	a := f.admin.send("PUT", "/api/v1/subscriptions/ops", object{"source": "team", "channel": "C1", "signing_secret": "8f742231b10e8888abcd99yyyzzz85a5"}).wants(t, 200)
	a.into(t, &slacked)

	if made.Tool != "*" || made.MinRisk != "low" || !made.Enabled || made.UpdatedBy != f.admin.named("admin") || len(made.Kinds) != 3 || made.Interactions != "" {
		t.Errorf("made = %+v", made)
	}
	if changed.ID != made.ID || changed.Enabled || !slices.Equal(changed.Kinds, []string{"settled"}) || changed.MinRisk != "high" {
		t.Errorf("changed = %+v", changed)
	}
	if !slacked.HasSigningSecret || slacked.Interactions != "/api/v1/slack/interactions/"+slacked.ID || strings.Contains(string(a.body), "8f7422") {
		t.Errorf("for Slack = %+v", slacked)
	}
	var kept shownSubscription
	f.admin.send("PUT", "/api/v1/subscriptions/ops", object{"source": "team", "channel": "C2"}).wants(t, 200).into(t, &kept)
	if !kept.HasSigningSecret {
		t.Error("a secret that was not given is gone")
	}
	f.admin.send("DELETE", "/api/v1/subscriptions/out", nil).wants(t, 204)
	f.admin.send("DELETE", "/api/v1/subscriptions/out", nil).wants(t, 404)
	f.admin.send("POST", "/api/v1/subscriptions/out/test", nil).wants(t, 404)
	var list struct{ Items []shownSubscription }
	f.operator.send("GET", "/api/v1/subscriptions", nil).wants(t, 200).into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "ops" {
		t.Errorf("list = %+v", list.Items)
	}

	f.admin.send("DELETE", "/api/v1/sources/team", nil).wants(t, 204)
	f.operator.send("GET", "/api/v1/subscriptions", nil).wants(t, 200).into(t, &list)
	if len(list.Items) != 0 {
		t.Errorf("without its source there is still %+v", list.Items)
	}

	var told, secrets int
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(1), count(1) FILTER (WHERE items::text LIKE '%8f7422%') FROM events
			WHERE kind = 'configured' AND items -> 0 ->> 'subject' LIKE 'subscription %'`).Scan(&told, &secrets)
	})
	if told != 5 || secrets != 0 {
		t.Errorf("%d changes are on record, %d of them with a secret; want 5 and 0", told, secrets)
	}
}

func TestInvalidSubscriptions(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("refused")
	f.receiver("hooks")
	f.workspace("team")
	f.admin.send("PUT", "/api/v1/sources/quiet", object{"kind": "slack", "config": object{}, "credentials": object{"values": object{"webhook_url": "https://hooks.slack.com/services/T/B/hush"}}}).wants(t, 200)
	f.lists("quiet", func() (source.Source, error) {
		return slack.New(slack.Config{Name: "quiet", Webhook: rest.NewSecret("https://hooks.slack.com/services/T/B/hush")})
	})
	for name, test := range map[string]struct {
		body    object
		pointer string
	}{
		"no such source":           {object{"source": "nowhere"}, "/source"},
		"a source that says more":  {object{"source": "mail"}, "/source"},
		"Slack without a token":    {object{"source": "quiet", "channel": "C1"}, "/source"},
		"Slack without a channel":  {object{"source": "team"}, "/channel"},
		"a webhook with a channel": {object{"source": "hooks", "channel": "C1"}, "/channel"},
		"a kind that is none":      {object{"source": "hooks", "kinds": []string{"everything"}}, "/kinds"},
		"a pattern that is none":   {object{"source": "hooks", "tool": "mail"}, "/tool"},
		"a bucket that is none":    {object{"source": "hooks", "rate_bucket": "nowhere"}, "/rate_bucket"},
		"a link that runs":         {object{"source": "team", "channel": "C1", "link": "javascript:alert(1)//"}, "/link"},
		"a link with a user":       {object{"source": "team", "channel": "C1", "link": "https://u:p@ops.example.com/"}, "/link"},
		"a link that all read":     {object{"source": "team", "channel": "C1", "link": "http://ops.example.com/"}, "/link"},
	} {
		p := f.admin.send("PUT", "/api/v1/subscriptions/x", test.body).wants(t, 400).problem(t)
		if len(p.Errors) == 0 || p.Errors[0].Pointer != test.pointer {
			t.Errorf("%s: problem = %+v, want one at %s", name, p, test.pointer)
		}
	}
	for _, values := range []object{{"signing_secret": "marker"}, {}, {"signing_secret": whsec, "previous_signing_secret": "short"}} {
		p := f.admin.send("PUT", "/api/v1/sources/bad", object{"kind": "webhook", "config": object{"url": "https://x.example/"}, "credentials": object{"values": values}}).wants(t, 400).problem(t)
		if len(p.Errors) == 0 || !strings.HasPrefix(p.Errors[0].Pointer, "/credentials/values/") {
			t.Errorf("credentials %v: problem = %+v", values, p)
		}
	}
	for _, url := range []string{"http://hooks.example.com/", "http://10.0.0.1/", "https://u:p@x.example/", "ftp://x.example/"} {
		f.admin.send("PUT", "/api/v1/sources/bad", object{"kind": "webhook", "config": object{"url": url}}).wants(t, 400)
	}
}

// TestSubscriptionAutomationsAreReserved: its automation is Countersign's own.
func TestSubscriptionAutomationsAreReserved(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("reserved")
	f.receiver("hooks")
	var made shownSubscription
	f.admin.send("PUT", "/api/v1/subscriptions/out", object{"source": "hooks"}).wants(t, 200).into(t, &made)
	p := object{
		"type": "mcp.exec", "external_id": "x", "automation_id": "countersign.subscription." + made.ID,
		"tool": object{"source": "hooks", "name": "deliver"}, "args": object{"type": "x", "timestamp": "2026-01-02T03:04:05Z", "data": object{}},
	}

	f.agent.send("POST", "/api/v1/actions", p).wants(t, 400)
	f.admin.send("POST", "/api/v1/actions", p).wants(t, 400)
}

func TestATestMessageIsAnAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("trial")
	f.receiver("hooks")
	f.admin.send("PUT", "/api/v1/subscriptions/out", object{"source": "hooks"}).wants(t, 200)

	shown := f.admin.send("POST", "/api/v1/subscriptions/out/test", nil).wants(t, 200).action(t)

	if shown.Phase != "approved" || shown.Policy.Source != "automation_override" {
		t.Errorf("the test = %+v, want it let through by the subscription", shown)
	}
	if n := f.settle(envelope.StatusSent, ""); n != 1 {
		t.Errorf("%d messages go out, want 1", n)
	}
	f.admin.send("PUT", "/api/v1/subscriptions/out", object{"source": "hooks", "enabled": false}).wants(t, 200)
	f.admin.send("POST", "/api/v1/subscriptions/out/test", nil).wants(t, 409)
	f.admin.send("PUT", "/api/v1/sources/new", object{"kind": "webhook", "config": object{"url": "https://hooks.example.com/in"}, "credentials": object{"values": object{"signing_secret": whsec}}}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/subscriptions/soon", object{"source": "new"}).wants(t, 200)
	if a := f.admin.send("POST", "/api/v1/subscriptions/soon/test", nil).wants(t, 503); !strings.Contains(string(a.body), "listed no tools yet") {
		t.Errorf("a test before the source is listed: %s", a.body)
	}
	var args json.RawMessage
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT args FROM actions WHERE source_id = 'hooks'").Scan(&args)
	})
	if !strings.Contains(string(args), "countersign.test") {
		t.Errorf("the message is %s", args)
	}
}

func TestADeliveryThatArrivedIsSentAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("resends")
	f.receiver("hooks")
	const at, src = "/api/v1/subscriptions/out", "/api/v1/sources/hooks"
	f.admin.send("PUT", at, object{"source": "hooks"}).wants(t, 200)
	deliver := func(status envelope.Status, reason outbox.Reason) (id string) {
		t.Helper()
		id = f.admin.send("POST", at+"/test", nil).wants(t, 200).action(t).Envelope.ActionID
		if n := f.settle(status, reason); n != 1 {
			t.Fatalf("%d messages go out, want 1", n)
		}
		return id
	}
	resend := func(c *client, id string) answer { return c.send("POST", path(id, "/resend"), object{"note": "lost"}) }
	remedy := func(id, want string) {
		t.Helper()
		if a := resend(f.operator, id).wants(t, 409); !strings.Contains(string(a.body), want) {
			t.Errorf("a resend = %s, want the remedy %q", a.body, want)
		}
	}
	delivery := deliver(envelope.StatusSent, "")

	resend(f.agent, delivery).refused(t, 403, "role")
	resend(f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer}), delivery).refused(t, 403, "role")
	first := resend(f.operator, delivery).wants(t, 200)
	again := resend(f.admin, delivery).wants(t, 200).action(t)
	var made wire.Action
	first.into(t, &made)
	if made.Resends == nil || made.Resends.String() != delivery || made.Phase != "approved" || again.Envelope.ActionID != made.Envelope.ActionID.String() {
		t.Errorf("two resends at a time = %s and %+v, want one action, of the delivery", first.body, again)
	}
	if n := f.settle(envelope.StatusSent, ""); n != 1 {
		t.Errorf("%d messages go out again, want 1", n)
	}
	var kept wire.Action
	f.operator.send("GET", path(delivery), nil).wants(t, 200).into(t, &kept)
	if kept.Phase != "completed" || kept.Resends != nil {
		t.Errorf("the delivery = %+v, want it completed and no resend", kept)
	}

	failed := deliver(envelope.StatusFailed, outbox.Refused)
	remedy(failed, "countersign dlq replay "+failed)
	f.operator.send("POST", "/api/v1/dead-letters/discard", object{"action_ids": []string{failed}, "reason": "old"}).wants(t, 200)
	resend(f.operator, failed).wants(t, 200)

	f.admin.send("PUT", at, object{"source": "hooks", "enabled": false}).wants(t, 200)
	remedy(delivery, "countersign subscription set out --source hooks")
	f.admin.send("PUT", at, object{"source": "hooks"}).wants(t, 200)
	f.admin.send("PUT", src, object{"kind": "webhook", "config": object{"url": "https://hooks.example.com/in"}, "enabled": false}).wants(t, 200)
	remedy(delivery, "countersign source set hooks")
	f.admin.send("DELETE", at, nil).wants(t, 204)
	remedy(delivery, "a new one receives new events only")
}

// TestChannelsShowMailByChoice: who may not read mail cannot have a channel show
// it, nor move the channel that does.
func TestChannelsShowMailByChoice(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("channelmail")
	f.workspace("team")
	f.receiver("hooks")
	const at = "/api/v1/subscriptions/team"
	var got wire.Subscription
	f.admin.send("PUT", at, object{"source": "team", "channel": "C1"}).wants(t, 200).into(t, &got)
	if got.ShowMail {
		t.Error("a channel shows mail that nobody chose")
	}
	f.admin.send("PUT", at, object{"source": "team", "channel": "C1", "show_mail": true}).wants(t, 200).into(t, &got)
	if !got.ShowMail {
		t.Error("the choice was not stored")
	}
	blind := f.holder(identity.Grant{Name: "blind", Role: identity.RoleAdmin, Scopes: slices.DeleteFunc(slices.Clone(identity.Scopes()), func(s identity.Scope) bool {
		return s == identity.MailRead
	})})
	blind.send("PUT", at, object{"source": "team", "channel": "C2", "show_mail": true}).refused(t, 403, "scope")
	blind.send("PUT", at, object{"source": "team", "channel": "C2"}).wants(t, 200).into(t, &got)
	if got.ShowMail || got.Channel != "C2" {
		t.Errorf("a change without the choice = %+v, want no mail shown", got)
	}
	f.admin.send("PUT", "/api/v1/subscriptions/hooks", object{"source": "hooks", "show_mail": true}).wants(t, 400)
}
