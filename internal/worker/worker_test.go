package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

func (y *fixture) fleet(src *sourcetest.Source, cfg worker.PipelineConfig) *worker.Worker {
	y.t.Helper()
	f, err := worker.New(y.t.Context(), y.db, settings.NewCache(), y.live(src), worker.Config{Pipeline: cfg})
	if err != nil {
		y.t.Fatal(err)
	}
	return f
}

func TestAWakeUpReachesAnotherProcess(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	for _, id := range []string{"w1", "w2"} {
		cfg := config(id)
		cfg.Poll = time.Hour
		y.run(y.fleet(y.src, cfg))
	}
	waker := worker.NewWaker(t.Context(), y.db, slog.New(slog.DiscardHandler))
	t.Cleanup(waker.Close)

	const rounds = 8
	for range rounds {
		y.submit(toolOnce, 3)
		waker.Wake()
		y.empty()
	}

	if got := y.src.TotalEffects(); got != 3*rounds || len(y.src.Calls()) != got {
		t.Errorf("%d calls had %d effects, want %d", len(y.src.Calls()), got, 3*rounds)
	}
}

func TestWithoutAWakeUpThePollFindsIt(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.run(y.fleet(y.src, config("w1")))

	for range 3 {
		y.submit(toolOnce, 2)
		y.empty()
	}

	if got := y.src.TotalEffects(); got != 6 {
		t.Errorf("%d effects, want 6", got)
	}
}

func TestLeaderExpiresUndecidedActions(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("INSERT INTO policy_modes (tenant_id, key, mode) VALUES ($1, 'fake:act.once', 'require_approval')", y.tenant.String())
	id := y.submit(toolOnce, 1)[0]
	y.exec("UPDATE actions SET approval_expires_at = now() - interval '1 second'")
	y.run(y.fleet(y.src, config("w1")))

	y.until("SELECT approval_state = 'expired' FROM actions WHERE action_id = $1", id.String())

	if got := len(y.src.Calls()); got != 0 {
		t.Errorf("%d calls were made for what expired", got)
	}
}

func TestWakerSendsPendingWakeUpsOnClose(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	heard := y.wakeUps()
	waker := worker.NewWaker(t.Context(), y.db, slog.New(slog.DiscardHandler))

	waker.Wake()
	waker.Close()

	if got := heard(); got != 1 {
		t.Errorf("%d wake-ups were sent, want 1", got)
	}
}

func TestWakeUpsOfAMomentAreOne(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	heard := y.wakeUps()
	waker := worker.NewWaker(t.Context(), y.db, slog.New(slog.DiscardHandler))

	for range 1000 {
		waker.Wake()
	}
	waker.Close()

	if got := heard(); got < 1 || got > 20 {
		t.Errorf("1000 wake-ups of a moment became %d, want a few", got)
	}
}

// wakeUps listens for wake-ups. It returns a function that counts the wake-ups sent
// before its call.
func (y *fixture) wakeUps() func() int {
	y.t.Helper()
	conn, err := pgx.Connect(y.t.Context(), y.url)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	listen := func(sql string) {
		y.t.Helper()
		if _, err := conn.Exec(y.t.Context(), sql); err != nil {
			y.t.Fatal(err)
		}
	}
	listen("LISTEN countersign_work")
	return func() (n int) {
		listen("NOTIFY countersign_work, 'last'")
		for ; ; n++ {
			notified, err := conn.WaitForNotification(y.t.Context())
			if err != nil {
				y.t.Fatal(err)
			}
			if notified.Payload == "last" {
				return n
			}
		}
	}
}
