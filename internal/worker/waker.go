package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// debounce is the least time between two wake-ups of one process. What is
// committed in between is covered by the later one.
const debounce = 5 * time.Millisecond

// Waker tells the fleet, through a River job, that something may be due. The
// job says only "look now": losing one delays work until the next look, and
// loses none. It is safe for concurrent use.
type Waker struct {
	client *river.Client[pgx.Tx]
	log    *slog.Logger
	calls  chan struct{}
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// NewWaker starts a Waker; Close ends it.
func NewWaker(ctx context.Context, db *pgxpool.Pool, log *slog.Logger) (*Waker, error) {
	client, err := river.NewClient(riverpgxv5.New(db), &river.Config{
		Schema: postgres.RiverSchema, Logger: warnOnly(log),
		// River drops notifications that come sooner than this after another.
		FetchCooldown: time.Millisecond,
	})
	if err != nil {
		return nil, fmt.Errorf("new waker: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &Waker{client: client, log: log, calls: make(chan struct{}, 1), stop: stop}
	w.ended.Go(func() { w.loop(ctx) })
	return w, nil
}

// Wake has the fleet look soon. It does not block.
func (w *Waker) Wake() {
	select {
	case w.calls <- struct{}{}:
	default:
	}
}

// Close ends the Waker after a wake-up that is still to be sent.
func (w *Waker) Close() {
	w.stop()
	w.ended.Wait()
}

func (w *Waker) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			select {
			case <-w.calls:
				w.send(context.WithoutCancel(ctx))
			default:
			}
			return
		case <-w.calls:
		}
		// Close waits for a wake-up that has begun rather than cut it short.
		w.send(context.WithoutCancel(ctx))
		timer.Reset(debounce)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

func (w *Waker) send(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := w.client.Insert(ctx, pollArgs{}, nil); err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "fleet was not woken; it looks by itself", slog.Any("error", err))
	}
}

// warnOnly returns a logger for River: its warnings and errors, each message at
// most once a minute, since River reports an outage of the database in every
// part and at every try.
func warnOnly(log *slog.Logger) *slog.Logger {
	return slog.New(warnHandler{telemetry.WithoutRepeats(log.Handler(), time.Minute)})
}

type warnHandler struct{ slog.Handler }

func (h warnHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnHandler{h.Handler.WithAttrs(attrs)}
}

func (h warnHandler) WithGroup(name string) slog.Handler {
	return warnHandler{h.Handler.WithGroup(name)}
}
