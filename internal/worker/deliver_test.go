package worker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// inbox is a receiver that notes messages by their ids. It takes every second
// try of one.
type inbox struct {
	mu    sync.Mutex
	tries map[string]int
	taken map[string]string
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := r.Header.Get("Webhook-Id")
	if b.tries[id]++; b.tries[id] == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var message struct {
		Data struct {
			InvocationID string `json:"invocation_id"`
		}
	}
	if json.Unmarshal(body, &message) != nil || r.Header.Get("Webhook-Signature") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.taken[id] = message.Data.InvocationID
}

// TestTheFleetDeliversToWebhooks end to end: events are followed by two processes,
// messages signed, retried and taken, each once.
func TestTheFleetDeliversToWebhooks(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	box := &inbox{tries: map[string]int{}, taken: map[string]string{}}
	receiver := httptest.NewServer(box)
	t.Cleanup(receiver.Close)
	vault, err := connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(connection.Credentials{Values: map[string]string{connection.ValueSigningSecret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}})
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := vault.Encrypt(y.tenant, "hooks", secret)
	if err != nil {
		t.Fatal(err)
	}
	// One breaker would hold the rest back at the first answer of 503.
	live := connection.NewPool(connection.Config{Cipher: vault, Breaker: source.BreakerConfig{Failures: 1000},
		Open: func(_ envelope.TenantID, of catalog.Source) (source.Source, error) {
			if of.Kind == catalog.KindWebhook {
				return nil, nil
			}
			return y.src, nil
		}})
	t.Cleanup(live.Close)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		config, err := json.Marshal(connection.WebhookConfig{URL: receiver.URL, Networks: []string{"127.0.0.0/8"}})
		if err != nil {
			return err
		}
		return catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "hooks", Kind: catalog.KindWebhook, Config: config, Secret: encrypted, Enabled: true})
	})
	if err := connection.NewRefresher(y.db, settings.NewCache(), live, slog.New(slog.DiscardHandler)).Refresh(t.Context(), y.tenant, "hooks"); err != nil {
		t.Fatal(err)
	}
	y.exec("UPDATE tools SET retry_base_seconds = 0.001, retry_cap_seconds = 0.002, retry_jitter = 0 WHERE source_id = 'hooks'")
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return subscription.Put(ctx, tx, y.tenant, subscription.Subscription{
			ID: uuid.Must(uuid.NewV7()), Name: "out", Source: "hooks", Kinds: []string{subscription.Completed}, Tool: "*", MinRisk: envelope.RiskLow, Enabled: true,
		}, nil, false)
	})
	const n = 30
	ids := y.submit(toolKeyed, n)

	for _, name := range []string{"w1", "w2"} {
		fleet, err := worker.New(t.Context(), y.db, settings.NewCache(), live, worker.Config{Pipeline: config(name)})
		if err != nil {
			t.Fatal(err)
		}
		y.run(fleet)
	}
	y.until("SELECT count(1) = $1 FROM tool_executions e JOIN actions a USING (tenant_id, action_id) WHERE a.source_id = 'hooks' AND e.status = 'sent'", n)

	box.mu.Lock()
	defer box.mu.Unlock()
	told := map[string]int{}
	for _, about := range box.taken {
		told[about]++
	}
	for _, id := range ids {
		if told[id.String()] != 1 {
			t.Errorf("%s was told %d times", id, told[id.String()])
		}
	}
	if len(box.taken) != n {
		t.Errorf("%d messages were taken, want %d", len(box.taken), n)
	}
}

// TestDeliveriesOfADeletedSubscriptionAreDenied: they do not wait for a
// person.
func TestDeliveriesOfADeletedSubscriptionAreDenied(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	sub := subscription.Subscription{
		ID: uuid.Must(uuid.NewV7()), Name: "out", Source: "hooks", Kinds: []string{subscription.Completed}, Tool: "*", MinRisk: envelope.RiskLow, Enabled: true,
	}
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "hooks", Kind: catalog.KindWebhook, Enabled: true}); err != nil {
			return err
		}
		deliver := source.Tool{Name: "deliver", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: envelope.EffectKeyed}
		if err := catalog.PutListing(ctx, tx, y.tenant, "hooks", []source.Tool{deliver}); err != nil {
			return err
		}
		return subscription.Put(ctx, tx, y.tenant, sub, nil, false)
	})
	trial, err := sub.TestMessage(catalog.KindWebhook, "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := y.in.Accept(t.Context(), intake.Submitter{Tenant: y.tenant, Name: "test", Reserved: true}, []*envelope.Proposal{trial, trial})
	if err != nil || answers[0].Err != nil || answers[0].Approval != envelope.ApprovalAuto {
		t.Fatalf("Accept = %+v, %v", answers, err)
	}

	y.configure(func(ctx context.Context, tx pgx.Tx) error { return subscription.Delete(ctx, tx, y.tenant, "out") })
	y.work()

	for _, a := range answers {
		v := y.view(a.Action)
		if r := v.Envelope.Result; r.Status != envelope.StatusSkipped || r.Error == nil || r.Error.Code != "policy_denied" {
			t.Errorf("it is %s (%+v), want it skipped", r.Status, r.Error)
		}
		if y.effects(a.Action) != 0 {
			t.Error("it was delivered")
		}
	}
}
