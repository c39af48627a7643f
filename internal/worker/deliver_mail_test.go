package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// channels is a workspace that notes the last message of each channel, and answers
// with the message, as Slack does.
type channels struct {
	mu   sync.Mutex
	sent map[string]string
}

func (c *channels) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var to struct{ Channel string }
	if err := json.Unmarshal(body, &to); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.sent[to.Channel] = string(body)
	c.mu.Unlock()
	answer := fmt.Sprintf(`{"ok":true,"channel":%q,"ts":"1712.1","message":%s}`, to.Channel, body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// TestChannelsThatShowMail: a channel shows sender and subject only where somebody
// chose it, with nothing in them that Slack or a reader takes for something else,
// and they are in no table but those of triage, and in no line of the log.
func TestChannelsThatShowMail(t *testing.T) {
	t.Parallel()
	const canary = "MAIL-CANARY-31f7"
	y := newFixture(t)
	workspace := &channels{sent: map[string]string{}}
	team, err := slack.New(slack.Config{Name: "team", Token: rest.NewSecret("xoxb-hush"), HTTP: rest.Config{Transport: workspace}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = team.Close() })
	listed, err := team.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := connection.NewPool(connection.Config{Open: func(_ envelope.TenantID, of catalog.Source) (source.Source, error) {
		if of.Kind == catalog.KindSlack {
			return team, nil
		}
		return y.src, nil
	}})
	t.Cleanup(live.Close)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "team", Kind: catalog.KindSlack, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, y.tenant, "team", listed); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, y.tenant, "", "fake:"+toolKeyed, envelope.ModeRequireApproval, "ada"); err != nil {
			return err
		}
		for channel, shows := range map[string]bool{"C1": true, "C2": false} {
			if err := subscription.Put(ctx, tx, y.tenant, subscription.Subscription{
				ID: uuid.Must(uuid.NewV7()), Name: strings.ToLower(channel), Source: "team", Kinds: []string{subscription.ApprovalRequest}, Tool: "fake:*",
				MinRisk: envelope.RiskLow, Channel: channel, ShowMail: shows, Enabled: true,
			}, nil, false); err != nil {
				return err
			}
		}
		return nil
	})
	external, message := "triage:"+strings.Repeat("0", 64), uuid.NewString()
	subject := canary + " <!channel> *now* <https://evil.example|Approve>\u202e\u0007 " + strings.Repeat("x", 900)
	y.exec(`INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $2, 'ann', 'maildir')`, y.tenant.String(), message)
	y.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, sender, sender_name, subject, received_at, size)
		VALUES ($1, $2, $2, sha256('x'), $2, false, 'bob@example.org', $3, $4, now(), 1)`, y.tenant.String(), message, canary+" <@U1>", subject)
	propose := func(p *envelope.Proposal) envelope.ActionID {
		t.Helper()
		answers, err := y.in.Accept(t.Context(), intake.Submitter{Tenant: y.tenant, Name: "triage", Names: identity.EveryName()}, []*envelope.Proposal{p})
		if err != nil || answers[0].Err != nil {
			t.Fatal(err, answers)
		}
		return answers[0].Action
	}
	id := propose(&envelope.Proposal{Type: envelope.TypeExec, ExternalID: external, Tool: envelope.Tool{Name: toolKeyed, Source: "fake"}, Args: json.RawMessage(`{}`)})
	y.exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
		VALUES ($1, $2, $3, $3, 'label', '[{"pointer":"/account","value":"ann","origin":"config","ref":""}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', '{"source":"mail","name":"message.label"}'::jsonb, 'args', '{"account":"ann"}'::jsonb), $4)`,
		y.tenant.String(), external, message, id.String())
	// An agent that writes the block of a message itself gets no mail.
	forged := propose(&envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: slack.ToolMessageSend, Source: "team"},
		Args: json.RawMessage(`{"channel":"C3","text":"x","blocks":[{"type":"section","block_id":"countersign_mail.` + id.String() + `","text":{"type":"plain_text","text":"forged"}}]}`)})

	var log bytes.Buffer
	fleet, err := worker.New(t.Context(), y.db, settings.NewCache(), live, func() worker.Config {
		cfg := worker.Config{Pipeline: config("w1")}
		cfg.Pipeline.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		return cfg
	}())
	if err != nil {
		t.Fatal(err)
	}
	stop := y.run(fleet)
	y.until("SELECT count(1) = 3 FROM tool_executions e JOIN actions a USING (tenant_id, action_id) WHERE a.source_id = 'team' AND e.status = 'sent'")
	stop()

	shown := workspace.sent["C1"]
	var sent struct {
		Blocks []struct {
			BlockID string `json:"block_id"`
			Text    struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal([]byte(shown), &sent); err != nil {
		t.Fatal(err)
	}
	var text string
	for _, b := range sent.Blocks {
		if strings.HasPrefix(b.BlockID, "countersign_mail.") {
			if text = b.Text.Text; b.Text.Type != "plain_text" {
				t.Errorf("the mail is %s, want plain_text", b.Text.Type)
			}
		}
	}
	if !strings.HasPrefix(text, "From: "+canary+" &lt;@U1&gt; &lt;bob@example.org&gt;\nSubject: "+canary+" &lt;!channel&gt; *now* &lt;https://evil.example|Approve&gt;\\u{202E}\\u{0007} x") ||
		!strings.HasSuffix(text, "x…") || len(text) > 600 {
		t.Errorf("the channel shows %q", text)
	}
	for _, channel := range []string{"C2", "C3"} {
		if got := workspace.sent[channel]; got == "" || strings.Contains(got, canary) {
			t.Errorf("%s got %q, want a message without mail", channel, got)
		}
	}
	if strings.Contains(log.String(), canary) {
		t.Error("the log holds text of mail")
	}
	if v := y.view(forged); strings.Contains(string(v.Envelope.Result.Output), canary) {
		t.Errorf("the forged message led to %s", v.Envelope.Result.Output)
	}
	rows, _ := y.db.Query(t.Context(), `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'countersign_data' AND c.relkind = 'r' AND c.relname NOT LIKE 'triage\_%'`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 30 {
		t.Fatalf("%d tables, %v, want all", len(tables), err)
	}
	for _, table := range tables {
		if n := one[int](y, "SELECT count(1) FROM "+pgx.Identifier{table}.Sanitize()+" r WHERE to_jsonb(r)::text LIKE '%' || $1 || '%'", canary); n > 0 {
			t.Errorf("%d rows of %s hold text of mail", n, table)
		}
	}
}
