package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/label"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/reader"
	"github.com/countersign-dev/countersign/internal/triage/tagger"
)

// held is an account whose lease this process holds.
type held struct {
	engine *Engine
	lease  *lease.Lease
	reader *reader.Reader
	asker  *asker.Asker
	tagger *tagger.Tagger
	// once reports whether the account is read to its end, once.
	once bool
	// visited is when the last visit of all folders was recorded.
	visited time.Time
	// yielded reports whether the account is to be released in favour of
	// others.
	yielded bool
}

func (e *Engine) newHeld(l *lease.Lease, once bool) *held {
	c := e.cfg
	h := &held{engine: e, lease: l, once: once, reader: reader.New(reader.Config{
		Open: c.Open, Model: c.Model, Resolver: c.Resolver, Withhold: c.Withhold, Texts: c.Writer != nil, Metrics: e.metrics, Tracer: c.Tracer,
	}, l)}
	interrupt := h.interrupt
	if once {
		interrupt = nil
	}
	h.asker = asker.New(asker.Config{Models: c.Models, Writer: c.Writer, Withhold: c.Withhold, Metrics: e.metrics, Tracer: c.Tracer}, l, h.reader, interrupt)
	h.tagger = tagger.New(l, h.reader, c.Writer)
	if c.Models != nil {
		h.reader.Questions = h.asker
	}
	return h
}

// read reads the account until ctx ends, the lease ends, or an error occurs;
// with once, until nothing is left to read. It returns the pause until the
// account is due again.
func (h *held) read(ctx context.Context) (pause time.Duration, err error) {
	ctx, end := h.lease.Keep(ctx)
	defer func() {
		end()
		h.reader.Close()
	}()
	for {
		err := h.cycle(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return 0, h.stopped(ctx, cause)
		}
		if errors.Is(err, lease.ErrPaused) {
			return 0, h.stopped(ctx, err)
		}
		pause = h.lease.Account.Every
		if h.yielded {
			pause = 0 // there is more to do
		}
		if err != nil {
			pause = h.lease.Retry(err)
			h.lease.Log.WarnContext(ctx, "mail account not read", slog.Duration("retry_in", pause), slog.String("error", measure.Problem(err)))
		}
		if ended := h.ended(ctx, err, pause); ended != nil && err == nil {
			err = ended
		}
		if h.once || err != nil || h.yielded {
			return pause, err
		}
		if h.wait(ctx, pause); h.yielded {
			return pause, nil
		}
	}
}

// stopped returns the error of an ended lease, or nil if the process stops.
func (h *held) stopped(ctx context.Context, cause error) error {
	switch {
	case errors.Is(cause, lease.ErrLost):
		h.lease.Log.WarnContext(ctx, "triage lost an account", slog.Any("error", cause))
		return cause
	case errors.Is(cause, lease.ErrChanged):
		return cause
	case errors.Is(cause, lease.ErrPaused):
		h.lease.Log.InfoContext(ctx, "triage of an account is paused")
	}
	return nil
}

// cycle reads new mail, asks models about some messages, and reads a page of
// older mail, repeatedly, until no older mail is left and no question can be
// asked.
func (h *held) cycle(ctx context.Context) (err error) {
	ctx, span := h.engine.cfg.Tracer.Start(ctx, "read account", trace.WithAttributes(attribute.String("account_id", h.lease.Account.ID.String())))
	defer func() { measure.EndSpan(span, err) }()
	if err := h.start(ctx); err != nil {
		return err
	}
	h.asker.Begin(ctx)
	rounded := time.Now() // of action tags, the last one is at the end
	changes, backfill, asked := reader.NewRun(reader.Changes), reader.NewRun(reader.Backfill), reader.NewRun(reader.Asked)
	for _, run := range []*reader.Run{changes, backfill, asked} {
		defer h.reader.End(ctx, run)
	}
	for {
		if err := changes.Note(h.reader.Newer(ctx, changes)); err != nil {
			return err
		}
		if time.Since(rounded) >= h.lease.Account.Every {
			rounded = time.Now()
			if err := changes.Note(h.tagger.Round(ctx, changes)); err != nil {
				return err
			}
		}
		open, err := h.asker.Ask(ctx, asked)
		if asked.Note(err) != nil {
			return err
		}
		if err := h.visit(ctx); err != nil {
			return err
		}
		older, err := h.reader.Older(ctx, backfill)
		if backfill.Note(err) != nil {
			return err
		}
		texts, err := h.asker.Write(ctx, changes)
		if changes.Note(err) != nil {
			return err
		}
		if !older && !texts && !open || h.yielded {
			return errors.Join(changes.Note(h.tagger.Round(ctx, changes)), h.label(ctx))
		}
	}
}

// label matches messages with the labels of their owner, a set at a time. A model
// is asked about the first set with open labels alone, so that new mail is read.
func (h *held) label(ctx context.Context) error {
	of, asks := h.lease.Account.ID, h.asker.Labels()
	for ctx.Err() == nil {
		pending, open := false, []label.Open(nil)
		err := h.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
			if pending, err = label.Pending(ctx, tx, h.lease.Tenant, of); err == nil && pending && asks {
				open, err = label.Opens(ctx, tx, h.lease.Tenant, of)
			}
			return err
		})
		if err != nil || !pending {
			return err
		}
		asks = asks && len(open) == 0
		answers := h.asker.AskLabels(ctx, open)
		if err := h.lease.Write(ctx, func(tx pgx.Tx) error { return label.Round(ctx, tx, h.lease.Tenant, of, answers) }); err != nil {
			return err
		}
	}
	return nil
}

// start opens the account unless it is open, and loads the input of decisions.
func (h *held) start(ctx context.Context) error {
	err := h.lease.Tx(ctx, func(tx pgx.Tx) error {
		if err := h.lease.Begin(ctx, tx); err != nil {
			return err
		}
		return errors.Join(h.asker.Configured(ctx, tx), h.reader.Load(ctx, tx))
	})
	if err != nil {
		return err
	}
	return h.reader.Open(ctx)
}

// visit records that all folders were checked, at most every few seconds.
func (h *held) visit(ctx context.Context) error {
	const often = 10 * time.Second
	if time.Since(h.visited) < often {
		return nil
	}
	h.visited = time.Now()
	return h.lease.Tx(ctx, func(tx pgx.Tx) error {
		return errors.Join(h.lease.Visited(ctx, tx), h.asker.PutStates(ctx, tx))
	})
}

// ended records the result of a cycle. After an error it closes the account, so
// that the next cycle opens it again.
func (h *held) ended(ctx context.Context, err error, pause time.Duration) error {
	if err != nil {
		h.reader.Close()
	}
	h.engine.metrics.Cycle(ctx, err)
	return h.lease.Tx(ctx, func(tx pgx.Tx) error {
		return errors.Join(h.lease.End(ctx, tx, err, pause), h.asker.PutStates(ctx, tx))
	})
}

// wait returns when a folder may have changed, a person asks for a reading, a
// model has recovered, the account is to be released, or the given time is
// over. An error from the reader's Wait is returned by the next cycle.
func (h *held) wait(ctx context.Context, longest time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var signals sync.WaitGroup
	signals.Go(func() {
		defer cancel()
		recovered := time.NewTicker(h.engine.cfg.Look)
		defer recovered.Stop()
		for {
			select {
			case <-h.lease.Asked():
				return
			case <-h.engine.yields:
				h.yielded = true
				return
			case <-ctx.Done():
				return
			case <-recovered.C:
				if h.asker.Recovered() {
					return
				}
			}
		}
	})
	if err := h.reader.Wait(ctx); err != nil {
		<-ctx.Done() // at the latest when the account is due by its interval
	}
	cancel()
	signals.Wait()
}

// interrupt stops questions to models for new mail, and when the account is to
// be released.
func (h *held) interrupt(ctx context.Context, stop func()) {
	var signals sync.WaitGroup
	defer signals.Wait()
	signals.Go(func() {
		if h.reader.Wait(ctx) == nil {
			stop()
		}
	})
	select {
	case <-h.engine.yields:
		h.yielded = true
		stop()
	case <-ctx.Done():
	}
}
