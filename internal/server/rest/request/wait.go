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

// DefaultWait is how long a request that waits for an action's end waits unless
// told otherwise, MaxWait the most.
const (
	DefaultWait = 30 * time.Second
	MaxWait     = 5 * time.Minute
)

// Day is 24 hours.
const Day = 24 * time.Hour

// WaitOf returns how long the caller wants to wait for an action's end, or
// otherwise if the query does not say.
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
// caller has too many, a request that only reads is refused: the error is
// fault.Limited. What another request has done is done, so that it is answered
// at once, as when its wait is over: closed is then nil.
func (c *Call) OpenWait() (closed func(), err error) {
	closed, err = c.Waits.Open(c.By)
	if err != nil && c.R.Method != http.MethodGet {
		c.W.Header().Set("Countersign-Pending", "true")
		return nil, nil
	}
	return closed, err
}

// EndWait returns an action to the due order whose proposing request does not
// wait for it any more, also if the client left. An action for which this fails
// stays awaited.
func (b *Backend) EndWait(ctx context.Context, tenant envelope.TenantID, id envelope.ActionID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WorkTimeout)
	defer cancel()
	err := inTx(ctx, b, postgres.API(tenant), func(ctx context.Context, tx pgx.Tx) error { return outbox.EndWait(ctx, tx, tenant, id) })
	if err != nil {
		b.Log.WarnContext(ctx, "action stays awaited", slog.String("action_id", id.String()), slog.Any("error", err))
	}
}

// Wait is how Await waits.
type Wait struct {
	// Most bounds the wait; zero reads once.
	Most time.Duration
	// Watch returns a channel that receives when something has changed, as
	// Broker.Watch does; nil for nothing that tells.
	Watch func(context.Context) (changed <-chan struct{}, stop func(), err error)
	// Scheduled reports that there is nothing to read before a change.
	Scheduled bool
	// Every is how often to read without a change; zero is never.
	Every time.Duration
	// Closed ends every wait when it is closed, as the server closes.
	Closed <-chan struct{}
}

// Await reads something until read says that it is done, the time is over or the
// server closes, and returns what was read last. The error is that of ctx, of
// watching, or of reading.
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
