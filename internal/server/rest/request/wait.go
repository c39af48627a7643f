package request

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// DefaultWait is the default wait for an action's end, MaxWait the longest.
const (
	DefaultWait = 30 * time.Second
	MaxWait     = 5 * time.Minute
)

// Day is 24 hours.
const Day = 24 * time.Hour

// WaitOf returns the time that the caller wants to wait for an action's end,
// or otherwise if the query has none.
func WaitOf(query url.Values, otherwise time.Duration) (time.Duration, error) {
	text := query.Get("wait")
	if text == "" {
		return otherwise, nil
	}
	d, err := envelope.ParseDuration(text)
	if err != nil {
		return 0, Invalid("/query/wait", envelope.RuleFormat, "must be a duration such as 30s")
	}
	return time.Duration(d), CheckDuration("/query/wait", d, 0, MaxWait)
}

// OpenWait counts another wait of the caller until closed is called. If the
// caller has too many, a request that only reads is refused with
// fault.Limited. A request that has already changed something is answered
// without a wait: closed is then nil.
func (c *Call) OpenWait() (closed func(), err error) {
	closed, err = c.Waits.Open(c.By)
	if err != nil && c.R.Method != http.MethodGet {
		c.W.Header().Set("Countersign-Pending", "true")
		return nil, nil
	}
	return closed, err
}

// EndWait returns an action to due order whose proposing request no longer
// waits for it, also if the client left. If it fails, the action stays awaited.
func (b *Backend) EndWait(ctx context.Context, tenant envelope.TenantID, id envelope.ActionID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WorkTimeout)
	defer cancel()
	err := inTx(ctx, b, postgres.API(tenant), func(ctx context.Context, tx pgx.Tx) error { return outbox.EndWait(ctx, tx, tenant, id) })
	if err != nil {
		b.Log.WarnContext(ctx, "action stays awaited", slog.String("action_id", id.String()), slog.Any("error", err))
	}
}

// Wait configures Await.
type Wait struct {
	// Most bounds the wait; zero reads once.
	Most time.Duration
	// Watch returns a channel that receives after changes, like Broker.Watch; nil
	// if there are no notifications.
	Watch func(context.Context) (changed <-chan struct{}, stop func(), err error)
	// Scheduled reports that there is nothing to read before a change.
	Scheduled bool
	// Every is the poll interval; zero means never.
	Every time.Duration
	// Closed ends every wait when it is closed, as the server closes.
	Closed <-chan struct{}
}

// Await calls read until it reports done, the time is over or the server closes,
// and returns the last result. The error is that of ctx, of Watch, or of read.
func Await[T any](ctx context.Context, w Wait, read func(context.Context) (v T, done bool, err error)) (v T, done bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, w.Most)
	defer cancel()
	var changed <-chan struct{} // nil never receives, also after an error
	if w.Watch != nil {
		var stop func()
		if changed, stop, err = w.Watch(waiting); err == nil {
			defer stop()
		} else if waiting.Err() == nil && !closed(w.Closed) {
			return v, false, err
		}
	}
	var tick <-chan time.Time
	if w.Every > 0 {
		ticker := time.NewTicker(w.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	wanted := !w.Scheduled || changed == nil
	for ended := false; ; wanted = true {
		if wanted {
			if v, done, err = read(ctx); err != nil || done || ended {
				return v, done, err
			}
		}
		select {
		case <-changed:
			continue
		case <-tick:
			continue
		case <-waiting.Done():
		case <-w.Closed:
		}
		if ctx.Err() != nil || wanted {
			return v, false, ctx.Err() // nil if only the time is over
		}
		ended = true // it was not read yet
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// CheckDuration returns an *envelope.InvalidError for the pointer at if a
// duration is shorter than least or longer than most.
func CheckDuration(at string, d envelope.Duration, least, most time.Duration) error {
	switch {
	case time.Duration(d) < least:
		return Invalid(at, "minimum", "must be at least "+envelope.Duration(least).String())
	case time.Duration(d) > most:
		return Invalid(at, "maximum", "must be at most "+envelope.Duration(most).String())
	}
	return nil
}
