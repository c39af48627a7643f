package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// nowhere makes the fixture's source unreachable, and returns a worker whose
// calls go there, through its own breaker.
func (y *fixture) nowhere(breaker source.BreakerConfig, cfg worker.PipelineConfig) *worker.Pipeline {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		src := catalog.Source{ID: "fake", Kind: catalog.KindMCP, Config: []byte(`{"transport":"http","url":"http://127.0.0.1:1/mcp"}`), Enabled: true}
		if err := catalog.PutSource(ctx, tx, y.tenant, src); err != nil {
			return err
		}
		return catalog.AcceptSource(ctx, tx, y.tenant, src)
	})
	live := connection.NewPool(connection.Config{Breaker: breaker, Networks: safehttp.Loopback()})
	y.t.Cleanup(live.Close)
	return worker.NewPipeline(y.db, settings.NewCache(), live, cfg)
}

// openBreaker is the breaker of the fixture's source; nil if it is closed.
func (y *fixture) openBreaker() *breaker.OpenBreaker {
	y.t.Helper()
	var all []breaker.OpenBreaker
	if err := postgres.InTx(y.t.Context(), y.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		all, err = breaker.NotClosed(y.t.Context(), tx, y.tenant)
		return err
	}); err != nil {
		y.t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// trip opens the breaker of the fixture's source, as another worker does.
func (y *fixture) trip(openFor time.Duration) {
	y.t.Helper()
	y.inWorker(func(tx pgx.Tx) error {
		return breaker.Open(y.t.Context(), tx, breaker.Source{Tenant: y.tenant, ID: "fake"}, breaker.CauseFailures, openFor, "another")
	})
}

func (y *fixture) inWorker(fn func(tx pgx.Tx) error) {
	y.t.Helper()
	if err := postgres.InTx(y.t.Context(), y.db, postgres.Worker(), fn); err != nil {
		y.t.Fatal(err)
	}
}

// elapse lets the time of every breaker run out, and makes waiting rows due.
func (y *fixture) elapse() {
	y.t.Helper()
	y.exec("UPDATE breakers SET open_until = now() - interval '1 second'")
	y.exec("UPDATE outbox SET next_attempt_at = now() WHERE lease_until IS NULL")
}

// hearBreakers adds notifications of changes of breakers.
func (y *fixture) hearBreakers() {
	y.t.Helper()
}

func TestABreakerThatOpensHoldsForTheFleet(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.hearBreakers()
	cfg := config("w1")
	cfg.Retry = outbox.Retry{Base: time.Hour, Cap: time.Hour}
	first := y.nowhere(source.BreakerConfig{Failures: 5, OpenFor: time.Hour}, cfg)
	y.submit(toolRead, 5)
	y.run(first)
	y.until("SELECT EXISTS (SELECT FROM breakers WHERE state = 'open' AND worker = 'w1')")

	// Another process, whose own breaker has not seen a failure.
	y.run(y.pipeline(y.db, y.src, config("w2")))
	later := y.submit(toolRead, 50)
	y.settled()

	if got := len(y.src.Calls()); got != 0 {
		t.Errorf("%d calls were made after it opened", got)
	}
	s := y.openBreaker()
	if s == nil || s.State != breaker.StateOpen || s.Openings != 1 || s.Cause != breaker.CauseFailures {
		t.Fatalf("breaker = %+v, want open once by failures", s)
	}
	for _, id := range later {
		v := y.view(id)
		if v.WaitsFor != preflight.CodeBreakerOpen || v.WaitsUntil.Before(s.Until) || len(y.history(id)) != 0 {
			t.Fatalf("it waits for %q until %s with the attempts %q, want breaker_open until %s and no attempt", v.WaitsFor, v.WaitsUntil, y.history(id), s.Until)
		}
	}
}

func TestOneProbeInTheFleet(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		step  sourcetest.Step
		sent  int
		phase breaker.State
		trips int
	}{
		"that succeeds":                   {sourcetest.Done(""), 60, breaker.StateClosed, 0},
		"that fails":                      {sourcetest.Unreachable(), 0, breaker.StateOpen, 2},
		"that a tool refuses, being well": {sourcetest.Failed(), 59, breaker.StateClosed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.hearBreakers()
			g := newBarrier()
			var calls atomic.Int32
			y.src.On(toolOnce, func(ctx context.Context, call source.Call) sourcetest.Step {
				g.arrived <- call
				if calls.Add(1) > 1 {
					return sourcetest.Done("")
				}
				step := test.step
				step.Wait = g.open
				return step
			})
			y.trip(time.Hour)
			ids := y.submit(toolOnce, 60)
			cfg := config("w1")
			cfg.Concurrency, cfg.Retry = 20, outbox.Retry{Base: time.Hour, Cap: time.Hour}
			stop := y.run(y.pipeline(y.db, y.src, cfg))
			cfg.ID = "w2"
			stopOther := y.run(y.pipeline(y.db, y.src, cfg))
			y.settled()
			y.elapse()
			g.wait(t)

			// During the probe all others wait, again and again.
			for range 3 {
				y.until("SELECT count(1) = 59 FROM outbox WHERE waits_for = 'breaker_open' AND lease_until IS NULL AND next_attempt_at > now() AND next_attempt_at < now() + interval '5 seconds'")
				y.exec("UPDATE outbox SET next_attempt_at = now(), waits_for = NULL WHERE lease_until IS NULL")
			}
			y.until("SELECT count(1) = 59 FROM outbox WHERE waits_for = 'breaker_open' AND lease_until IS NULL")
			during, s := len(y.src.Calls()), y.openBreaker()
			close(g.open)
			y.until("SELECT state <> 'half-open' FROM breakers")
			if test.phase == breaker.StateClosed {
				y.exec("UPDATE outbox SET next_attempt_at = now() WHERE lease_until IS NULL")
				y.empty()
			} else {
				y.settled()
			}
			stop()
			stopOther()

			if during != 1 || s == nil || s.State != breaker.StateHalfOpen {
				t.Errorf("while the probe was under way %d calls were made, and the breaker was %+v; want one, and half-open", during, s)
			}
			sent := 0
			for _, id := range ids {
				if y.effects(id) == 1 {
					sent++
				}
			}
			if sent != test.sent {
				t.Errorf("%d were sent, want %d", sent, test.sent)
			}
			after := y.openBreaker()
			switch {
			case test.phase == breaker.StateClosed && after != nil:
				t.Errorf("breaker = %+v, want it closed", after)
			case test.phase == breaker.StateOpen && (after == nil || after.Openings != test.trips || time.Until(after.Until) < 45*time.Second):
				t.Errorf("breaker = %+v, want it open for longer", after)
			}
		})
	}
}

func TestFailedProbesDoubleTheTimeUpToABound(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	src := breaker.Source{Tenant: y.tenant, ID: "fake"}
	const openFor = 30 * time.Second
	for i, want := range []time.Duration{openFor, 2 * openFor, 4 * openFor, 8 * openFor, 5 * time.Minute, 5 * time.Minute} {
		if i > 0 {
			y.elapse()
			y.inWorker(func(tx pgx.Tx) error {
				won, err := breaker.Probe(t.Context(), tx, []breaker.Source{src}, "w1", time.Minute)
				if !won[src] {
					t.Errorf("nobody may probe after %d openings", i)
				}
				return err
			})
		}
		y.trip(openFor)

		s := y.openBreaker()
		if left := time.Until(s.Until); left < want-5*time.Second || left > want+5*time.Second || s.Openings != i+1 {
			t.Errorf("opening %d lasts %v (trip %d), want %v", i+1, left, s.Openings, want)
		}
	}
}

func TestTheRightToProbe(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	src := breaker.Source{Tenant: y.tenant, ID: "fake"}
	probe := func(worker string) (won bool) {
		y.inWorker(func(tx pgx.Tx) error {
			all, err := breaker.Probe(t.Context(), tx, []breaker.Source{src, {Tenant: y.tenant, ID: "none"}}, worker, time.Minute)
			won = all[src]
			return err
		})
		return won
	}
	release := func(worker string) {
		y.inWorker(func(tx pgx.Tx) error { return breaker.Release(t.Context(), tx, src, worker) })
	}
	expect := func(when string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s the right to probe = %t, want %t", when, got, want)
		}
	}

	expect("of a source in use", probe("w1"), false)
	y.trip(time.Hour)
	expect("of one that is open", probe("w1"), false)
	y.elapse()
	expect("of one whose time is over", probe("w1"), true)
	expect("while another has it", probe("w2"), false)
	release("w2")
	expect("after one who has it not released it", probe("w2"), false)
	release("w1")
	expect("after it was released", probe("w2"), true)
	y.elapse()
	expect("after its holder vanished", probe("w1"), true)
	y.inWorker(func(tx pgx.Tx) error {
		closed, err := breaker.Close(t.Context(), tx, src, "w1")
		again, _ := breaker.Close(t.Context(), tx, src, "w1")
		if !closed || again {
			t.Errorf("Close = %t and again %t, want that only the first changes it", closed, again)
		}
		return err
	})
	expect("of one that was closed", probe("w2"), false)
}

// TestAProbeThatIsNotMadeIsReleased has every envelope of the source be ended
// by another gate, or be taken away before its start is marked.
func TestAProbeThatIsNotMadeIsReleased(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(y *fixture){
		"because a gate spoke first": func(y *fixture) { y.exec("UPDATE actions SET must_run_before = now() - interval '1 second'") },
		"because it was undone before its start": func(y *fixture) {
			y.exec(`CREATE FUNCTION countersign_data.undone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
				IF NEW.status = 'sending' THEN DELETE FROM outbox WHERE action_id = OLD.action_id; RETURN NULL; END IF; RETURN NEW; END $$`)
			y.exec("CREATE TRIGGER undone BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION undone()")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.hearBreakers()
			y.submit(toolOnce, 1)
			spoil(y)
			y.trip(time.Hour)
			y.elapse()

			stop := y.run(y.pipeline(y.db, y.src, config("w1")))
			y.empty()
			// A worker that stops before it reads its claim's commit leaves the probe to its time limit.
			y.until("SELECT EXISTS (SELECT FROM breakers WHERE state = 'open')")
			stop()

			s := y.openBreaker()
			if s == nil || s.State != breaker.StateOpen || s.Until.After(time.Now().Add(5*time.Second)) || s.Openings != 1 {
				t.Errorf("breaker = %+v, want it open, and free to be probed at once", s)
			}
			if got := len(y.src.Calls()); got != 0 {
				t.Errorf("%d calls were made", got)
			}
		})
	}
}

// TestInterruptedProbeHasNoResult stops the worker while its probe
// hangs.
func TestInterruptedProbeHasNoResult(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	g := newBarrier() // never opened
	y.src.On(toolKeyed, g.hold)
	y.submit(toolKeyed, 1)
	y.trip(time.Hour)
	y.elapse()
	cfg := config("w1")
	cfg.Grace = time.Millisecond
	stop := y.run(y.pipeline(y.db, y.src, cfg))
	g.wait(t)

	stop()

	s := y.openBreaker()
	if s == nil || s.State == breaker.StateClosed || s.Openings != 1 {
		t.Errorf("breaker = %+v, want it not closed by a call that had no answer", s)
	}
}

func TestAWorkerThatDiesWithTheProbe(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.hearBreakers()
	y.trip(time.Hour)
	y.exec("UPDATE breakers SET state = 'half-open', worker = 'dead', open_until = now() + interval '1 minute'")
	id := y.submit(toolOnce, 1)[0]
	y.run(y.pipeline(y.db, y.src, config("w1")))
	y.settled()
	waits, calls := y.view(id).WaitsFor, len(y.src.Calls())

	y.elapse()
	y.until("SELECT state = 'closed' FROM breakers")
	y.empty()

	if waits != preflight.CodeBreakerOpen || calls != 0 {
		t.Errorf("before the right lapsed it waited for %q after %d calls", waits, calls)
	}
	if diff := cmp.Diff([]string{"1 sent"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// rateLimited is a response with a Retry-After.
func rateLimited(asked time.Duration) sourcetest.Step {
	s := sourcetest.Status(429)
	s.Observation.RetryAfter = asked
	return s
}

// TestRetryAfter has one response with a Retry-After of ten minutes.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	unavailable := sourcetest.Status(503)
	unavailable.Observation.RetryAfter = 10 * time.Minute
	for name, test := range map[string]struct {
		bucket string
		step   sourcetest.Step
		// The reasons for which actions wait: of the same bucket and source, of
		// another source in the bucket, and of the source in another bucket.
		same, neighbour, other string
	}{
		"closes a named bucket":                  {"slow", rateLimited(10 * time.Minute), "retry_after", "retry_after", ""},
		"leaves the source of the default alone": {"", rateLimited(10 * time.Minute), preflight.CodeBreakerOpen, "", preflight.CodeBreakerOpen},
		"closes it also with an unknown end":     {"slow", unavailable, "retry_after", "retry_after", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.hearBreakers()
			y.bucket(limits.Bucket{Name: "slow"})
			y.bucket(limits.Bucket{Name: "other"})
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				if err := catalog.PutSource(ctx, tx, y.tenant, catalog.Source{ID: "second", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
					return err
				}
				return catalog.PutListing(ctx, tx, y.tenant, "second", tools("as listed"))
			})
			y.src.Next(toolOnce, test.step)
			id := y.propose(proposal(in(test.bucket)))[0]
			y.run(y.pipeline(y.db, y.src, config("w1")))
			y.until("SELECT EXISTS (SELECT FROM breakers WHERE state = 'open') OR EXISTS (SELECT FROM buckets WHERE closed_until > now())")
			y.settledOrClosed()

			ids := y.propose(proposal(in(test.bucket)), proposal(in(test.bucket), func(p *envelope.Proposal) { p.Tool.Source = "second" }), proposal(in("other")))
			y.run(y.pipeline(y.db, y.src, config("w2")))
			y.settledOrClosed()

			if v := y.view(id); v.Envelope.Result.Status == envelope.StatusPending && time.Until(v.WaitsUntil) < 9*time.Minute {
				t.Errorf("it waits for %q until %s, want ten minutes or more", v.WaitsFor, v.WaitsUntil)
			}
			for i, want := range []string{test.same, test.neighbour, test.other} {
				v := y.view(ids[i])
				if v.WaitsFor != want || want != "" && time.Until(v.WaitsUntil) < 9*time.Minute || want == "" && v.Envelope.Result.Status != envelope.StatusSent {
					t.Errorf("envelope %d is %s and waits for %q until %s, want %q", i, v.Envelope.Result.Status, v.WaitsFor, v.WaitsUntil, want)
				}
			}
		})
	}
}

// settledOrClosed waits until each remaining action waits for something, its bucket
// among it.
func (y *fixture) settledOrClosed() {
	y.t.Helper()
	y.until(`SELECT NOT EXISTS (SELECT FROM outbox o JOIN buckets b USING (bucket_id)
		WHERE o.lease_until > now() OR o.next_attempt_at <= now() AND (b.opens_at IS NULL OR b.opens_at <= now()))`)
}

func TestAToolsOwnRetryPolicy(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	rule := limits.ToolRule{Source: "fake", Name: toolOnce, Retry: wire.Retry{
		MaxAttempts: 3, Base: envelope.Duration(time.Minute), Cap: envelope.Duration(90 * time.Second), Jitter: new(0.0),
	}}
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return limits.PutToolRule(ctx, tx, y.tenant, rule, "ada") })
	step := func(context.Context, source.Call) sourcetest.Step { return sourcetest.Unreachable() }
	y.src.On(toolOnce, step)
	id := y.propose(proposal())[0]
	y.run(y.pipeline(y.db, y.src, config("w1")))

	for attempt, want := range []time.Duration{time.Minute, 90 * time.Second} {
		y.until("SELECT attempt = $1 AND lease_until IS NULL FROM outbox", attempt+1)
		v := y.view(id)
		if left := time.Until(v.WaitsUntil); v.WaitsFor != outbox.WaitsRetry || left < want-10*time.Second || left > want+time.Second {
			t.Errorf("after attempt %d it waits for %q for %v, want retry for %v", attempt+1, v.WaitsFor, left, want)
		}
		y.exec("UPDATE outbox SET next_attempt_at = now()")
	}
	y.empty()

	if diff := cmp.Diff([]string{"1 pending unreachable", "2 pending unreachable", "3 failed unreachable"}, y.history(id)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// TestBreakersAreVisibleToTheirTenantOnly reads it as the API does.
func TestBreakersAreVisibleToTheirTenantOnly(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.trip(time.Hour)
	other := newEmployee() // any id that is no tenant's
	count := func(as envelope.TenantID) (n int) {
		if err := postgres.InTx(t.Context(), y.db, postgres.API(as), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT count(1)::int FROM breakers").Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}

	if own, others := count(y.tenant), count(envelope.TenantID(other)); own != 1 || others != 0 {
		t.Errorf("the tenant sees %d, another %d; want one and none", own, others)
	}
}
