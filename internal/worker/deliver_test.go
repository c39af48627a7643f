package worker_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
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

// webhook sets up a source "hooks" that delivers to a receiver, a subscription "out"
// to it, and the pool of connections that reaches it.
func (y *fixture) webhook(to http.Handler) (subscription.Subscription, *connection.Pool) {
	y.t.Helper()
	receiver := httptest.NewServer(to)
	y.t.Cleanup(receiver.Close)
	vault, err := connection.NewCipher(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		y.t.Fatal(err)
	}
	secret, err := json.Marshal(connection.Credentials{Values: map[string]string{connection.ValueSigningSecret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}})
	if err != nil {
		y.t.Fatal(err)
	}
	encrypted, err := vault.Encrypt(y.tenant, "hooks", secret)
	if err != nil {
		y.t.Fatal(err)
	}
	// One breaker would hold the rest back at the first answer of 503.
	live := connection.NewPool(connection.Config{Cipher: vault, Breaker: source.BreakerConfig{Failures: 1000},
		Open: func(_ envelope.TenantID, of catalog.Source) (source.Source, error) {
			if of.Kind == catalog.KindWebhook {
				return nil, nil
			}
			return y.src, nil
		}})
	y.t.Cleanup(live.Close)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		config, err := json.Marshal(connection.WebhookConfig{URL: receiver.URL, Networks: []string{"127.0.0.0/8"}})
		if err != nil {
			return err
		}
		return catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "hooks", Kind: catalog.KindWebhook, Config: config, Secret: encrypted, Enabled: true})
	})
	if err := connection.NewRefresher(y.db, settings.NewCache(), live, slog.New(slog.DiscardHandler)).Refresh(y.t.Context(), y.tenant, "hooks"); err != nil {
		y.t.Fatal(err)
	}
	y.exec("UPDATE tools SET retry_base_seconds = 0.001, retry_cap_seconds = 0.002, retry_jitter = 0 WHERE source_id = 'hooks'")
	sub := subscription.Subscription{
		ID: uuid.Must(uuid.NewV7()), Name: "out", Source: "hooks", Kinds: []string{subscription.Completed}, Tool: "*", MinRisk: envelope.RiskLow, Enabled: true,
	}
	y.put(sub)
	return sub, live
}

// put stores a subscription.
func (y *fixture) put(sub subscription.Subscription) {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return subscription.Put(ctx, tx, y.tenant, sub, nil, false)
	})
}

// TestTheFleetDeliversToWebhooks end to end: events are followed by two processes,
// messages signed, retried and taken, each once.
func TestTheFleetDeliversToWebhooks(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	box := &inbox{tries: map[string]int{}, taken: map[string]string{}}
	_, live := y.webhook(box)
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

// request is a message as its receiver gets it.
type request struct {
	header http.Header
	body   string
}

// recorder is a receiver that keeps its requests, and answers with a status.
type recorder struct {
	mu     sync.Mutex
	status int
	got    []request
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, request{q.Header, string(body)})
	w.WriteHeader(r.status)
}

func (r *recorder) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// requests returns the requests so far.
func (r *recorder) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// resend sends the message of a delivery again.
func (y *fixture) resend(delivery envelope.ActionID) (a intake.Answer, err error) {
	committed := func() {}
	err = postgres.InTx(y.t.Context(), y.db, postgres.API(y.tenant), func(tx pgx.Tx) error {
		snap, err := settings.NewCache().Current(y.t.Context(), tx, y.tenant)
		if err != nil {
			return err
		}
		views, err := outbox.Get(y.t.Context(), tx, y.tenant, delivery)
		if err != nil {
			return err
		}
		a, committed, err = subscription.Resend(y.t.Context(), tx, y.in, snap, intake.Submitter{Tenant: y.tenant, Name: "Ana"}, views[0], "lost")
		return err
	})
	if err == nil {
		committed()
	}
	return a, err
}

// refused wants a resend to be refused, with the remedy in the error.
func (y *fixture) refused(delivery envelope.ActionID, remedy string) {
	y.t.Helper()
	if _, err := y.resend(delivery); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), remedy) {
		y.t.Errorf("a resend = %v, want a conflict with %q", err, remedy)
	}
}

// TestADeliveryIsSentAgain to a receiver that has it already: the delivery stays as
// it is, and each resend is an action of its own, also one that fails.
func TestADeliveryIsSentAgain(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	box := &recorder{status: http.StatusOK}
	sub, live := y.webhook(box)
	about := y.submit(toolKeyed, 1)[0]
	fleet, err := worker.New(t.Context(), y.db, settings.NewCache(), live, worker.Config{Pipeline: config("w1")})
	if err != nil {
		t.Fatal(err)
	}
	stop := y.run(fleet)
	const ended = "SELECT count(1) = $1 FROM tool_executions e JOIN actions a USING (tenant_id, action_id) WHERE a.source_id = 'hooks' AND e.status = $2"
	y.until(ended, 1, "sent")
	stop()
	delivery := envelope.ActionID(one[uuid.UUID](y, "SELECT action_id FROM actions WHERE source_id = 'hooks'"))
	before := y.view(delivery)

	// Two people at once get one resend.
	var answers [2]intake.Answer
	var errs [2]error
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], errs[i] = y.resend(delivery) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil || answers[0].Action != answers[1].Action || answers[0].Known == answers[1].Known {
		t.Fatalf("two resends at once = %+v, %v; want one action, of which one is new", answers, err)
	}
	resent := answers[0].Action
	y.refused(resent, "has not ended")
	pipeline := func() {
		stop := y.run(worker.NewPipeline(y.db, settings.NewCache(), live, config("w2")))
		y.empty()
		stop()
	}
	pipeline()
	got := box.requests()
	if len(got) != 2 {
		t.Fatalf("%d requests, want 2", len(got))
	}
	first, second := got[0], got[1]
	if first.body != second.body || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") || !strings.Contains(first.body, about.String()) {
		t.Errorf("the resend = %+v, want the message and the id of %+v", second, first)
	}
	if first.header.Get("Countersign-Resend") != "" || second.header.Get("Countersign-Resend") != "1" || second.header.Get("Countersign-Attempt") != "1" {
		t.Errorf("headers = %v and %v, want the second marked as a resend", first.header, second.header)
	}

	// One that fails, of a resend: it is of the delivery.
	box.answer(http.StatusBadRequest)
	failed, err := y.resend(resent)
	if err != nil {
		t.Fatal(err)
	}
	pipeline()
	y.refused(failed.Action, "countersign dlq replay "+failed.Action.String())
	if last := box.requests()[2]; last.header.Get("Countersign-Resend") != "2" || last.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") {
		t.Errorf("headers of a resend of a resend = %v", last.header)
	}
	if diff := cmp.Diff(before.Envelope, y.view(delivery).Envelope); diff != "" {
		t.Errorf("the delivery was changed (-was +is):\n%s", diff)
	}
	if n := one[int](y, "SELECT count(1) FROM events e, jsonb_array_elements(e.items) i WHERE e.kind = 'replayed' AND i ->> 'action_id' = $1 AND i ->> 'note' = 'lost' AND i -> 'detail' ? 'resend'", delivery.String()); n != 2 {
		t.Errorf("%d resends are on record, want 2", n)
	}

	y.refused(about, "not a delivery")
	y.exec("UPDATE actions SET external_id = regexp_replace(external_id, '[0-9]{12}$', '000000000020') WHERE action_id = $1", uuid.UUID(failed.Action))
	y.refused(delivery, "20 times")
	sub.Enabled = false
	y.put(sub)
	y.refused(delivery, "subscription set out --source hooks")
	sub.Enabled, sub.Source = true, "other"
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "other", Kind: catalog.KindWebhook, Enabled: true})
	})
	y.put(sub)
	y.refused(delivery, "change its source back")
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return subscription.Delete(ctx, tx, y.tenant, "out") })
	y.refused(delivery, "was deleted")
	if n := len(box.requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}
