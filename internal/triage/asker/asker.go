// Package asker asks language models about messages that the rules and the
// embedded models leave open, and has them decided again with the answers. It
// also has models write summaries and drafts. Questions stop for new mail.
package asker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/reader"
)

const (
	// askedItems is the number of messages asked about together, lateItems the
	// number decided together without answers, and stepTime the time after
	// which no new question begins, so that new mail is read.
	askedItems = 32
	lateItems  = 50
	stepTime   = 5 * time.Second
	// firstLook is the longest wait of a cycle for the first probe of the
	// models.
	firstLook = 10 * time.Second
	// onceLook is the longest wait of a single reading for models that may be
	// loading.
	onceLook = 5 * time.Minute
	// stopGrace is how long questions may continue while new mail waits. It
	// doubles each time that all of them are cancelled, up to maxGivenUp times,
	// so that a slow server can answer too.
	stopGrace  = 3 * time.Second
	maxGivenUp = 5
	// maxAsked limits the characters of a message in a question.
	maxAsked = 8000
)

// Config configures an Asker. Metrics and Tracer are required.
type Config struct {
	// Models are the models to ask; if nil, none are asked.
	Models *Models
	// Writer writes summaries and drafts; if nil, none are written.
	Writer Writer
	// Withhold is the longest time that proposals wait for answers.
	Withhold time.Duration
	Metrics  *measure.Metrics
	Tracer   trace.Tracer
}

// Asker asks about the messages of one account.
type Asker struct {
	cfg    Config
	lease  *lease.Lease
	reader *reader.Reader
	// interrupt calls stop when other work is waiting, until ctx ends. If nil,
	// questions are not interrupted.
	interrupt func(ctx context.Context, stop func())
	// down holds the tiers that failed in this cycle, and why.
	down map[cascade.Tier]sight
	// givenUp counts the consecutive steps without any answer.
	givenUp int
}

// New returns an Asker for the messages of a reader. interrupt calls stop when
// other work is waiting, until ctx ends; if nil, questions are not interrupted.
func New(cfg Config, l *lease.Lease, r *reader.Reader, interrupt func(ctx context.Context, stop func())) *Asker {
	return &Asker{cfg: cfg, lease: l, reader: r, interrupt: interrupt}
}

// Begin begins a cycle. It waits briefly for the first probe of the models.
func (a *Asker) Begin(ctx context.Context) {
	a.cfg.Models.await(ctx, firstLook)
	a.down = map[cascade.Tier]sight{}
}

// Wanted implements reader.Questions.
func (a *Asker) Wanted(m cascade.Mail) []cascade.Tier { return a.cfg.Models.wanted(m) }

// Unavailable implements reader.Questions.
func (a *Asker) Unavailable(tier cascade.Tier) model.Kind {
	if down, ok := a.down[tier]; ok {
		return down.kind
	}
	return a.cfg.Models.unavailable(tier)
}

// Recovered reports whether a tier that failed in this cycle is available
// again.
func (a *Asker) Recovered() bool {
	for tier, down := range a.down {
		if a.cfg.Models.recoveredSince(tier, down.at) {
			return true
		}
	}
	return false
}

// askable returns the available tiers, and records the others.
func (a *Asker) askable() (tiers []cascade.Tier) {
	for _, tier := range a.cfg.Models.configured() {
		if kind := a.Unavailable(tier); kind != "" {
			a.failed(tier, kind)
		} else {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// failed records that a tier failed in this cycle, and reports whether that is
// new.
func (a *Asker) failed(tier cascade.Tier, kind model.Kind) bool {
	if _, ok := a.down[tier]; ok {
		return false
	}
	a.down[tier] = sight{kind, time.Now()}
	return true
}

// Ask asks models about messages, newest first, and has the answered ones
// decided again. It stops between two questions when it is interrupted, and
// after a while. Then it has the messages decided that have waited too long, or
// wait for unavailable models. It reports whether there is more to do now.
func (a *Asker) Ask(ctx context.Context, run *reader.Run) (more bool, err error) {
	if a.interrupt == nil {
		a.cfg.Models.await(ctx, onceLook)
	}
	stop := &stop{until: time.Now().Add(stepTime)}
	for more = true; more && !stop.over(); {
		if more, err = a.askSome(ctx, run, stop); err != nil {
			return false, err
		}
	}
	released, err := a.release(ctx, run)
	return more || released, err
}

// pending is a message with open questions.
type pending struct {
	mail cascade.Mail
	open []cascade.Tier
	// withheld reports whether its proposals wait for answers, and obsolete
	// whether the owner has touched the message or it is gone.
	withheld, obsolete bool
}

// askSome asks about some messages. It reports whether there may be more.
func (a *Asker) askSome(ctx context.Context, run *reader.Run, stop *stop) (more bool, err error) {
	tiers := a.askable()
	if len(tiers) == 0 {
		return false, nil
	}
	var due []pending
	if err := a.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		due, err = a.pending(ctx, tx, tiers, false, askedItems)
		return err
	}); err != nil || len(due) == 0 {
		return false, err
	}
	ctx, span := a.cfg.Tracer.Start(ctx, "ask models", trace.WithAttributes(attribute.Int("messages", len(due))))
	defer func() { measure.EndSpan(span, err) }()
	var mails []cascade.Mail
	for _, m := range due {
		if !m.obsolete {
			mails = append(mails, m.mail)
		}
	}
	results := a.question(ctx, stop, mails)
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	return a.answered(ctx, run, due, results)
}

// question asks models; no transaction may be open. After an interruption it
// begins no further question and cancels slow ones.
func (a *Asker) question(ctx context.Context, stop *stop, mails []cascade.Mail) []cascade.Result {
	ctx, end := a.interruptible(ctx, stop)
	defer end()
	return a.cfg.Models.cascade(stop).Ask(ctx, mails)
}

// interruptible returns a context that is cancelled some time after an
// interruption, which is also noted in stop. end must be called.
func (a *Asker) interruptible(ctx context.Context, stop *stop) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var interrupting sync.WaitGroup
	if a.interrupt != nil {
		interrupting.Go(func() {
			a.interrupt(ctx, func() {
				stop.called.Store(true)
				timer := time.AfterFunc(stopGrace<<min(a.givenUp, maxGivenUp), cancel)
				context.AfterFunc(ctx, func() { timer.Stop() })
			})
		})
	}
	return ctx, func() {
		cancel()
		interrupting.Wait()
	}
}

// answered stores the answers of models, and decides the messages again that
// have no open question for an available model. It reports whether anything
// changed.
func (a *Asker) answered(ctx context.Context, run *reader.Run, due []pending, results []cascade.Result) (progress bool, err error) {
	was := map[uuid.UUID]pending{}
	var again []pending
	for _, m := range due {
		if was[m.mail.ID] = m; m.obsolete {
			again = append(again, m)
		}
	}
	var stopped []pending
	for _, r := range results {
		m, kind := was[r.ID], r.Kind
		if kind != "" && len(r.Open) > 0 && a.failed(r.Open[0], kind) {
			progress = true
		}
		same := len(r.Replies) == len(m.mail.Replies) && slices.Equal(r.Open, m.open)
		m.mail.Replies, m.open = r.Replies, r.Open
		switch {
		case same && (kind == "" || !m.withheld):
			continue
		case len(r.Open) > 0 && kind == "":
			stopped = append(stopped, m)
		default:
			again = append(again, m)
		}
		progress = progress || !same
	}
	if progress {
		a.givenUp = 0
	} else if len(results) > 0 {
		a.givenUp++
	}
	a.lease.Log.DebugContext(ctx, "models asked", slog.Int("messages", len(due)), slog.Int("decided", len(again)), slog.Int("stopped", len(stopped)))
	if len(stopped) > 0 {
		if err := a.lease.Write(ctx, func(tx pgx.Tx) error { return a.putAnswers(ctx, tx, stopped) }); err != nil {
			return false, err
		}
	}
	return progress || len(again) > 0, a.decide(ctx, run, again)
}

// release decides withheld messages that have waited long enough, or wait for
// an unavailable model. It reports whether there may be more.
func (a *Asker) release(ctx context.Context, run *reader.Run) (more bool, err error) {
	var late []pending
	err = a.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		late, err = a.pending(ctx, tx, a.askable(), true, lateItems)
		return err
	})
	if err != nil || len(late) == 0 {
		return false, err
	}
	return len(late) == lateItems, a.decide(ctx, run, late)
}

// decide has messages decided again with the answers of models. The questions
// of obsolete ones are dropped.
func (a *Asker) decide(ctx context.Context, run *reader.Run, messages []pending) error {
	if len(messages) == 0 {
		return nil
	}
	var obsolete []uuid.UUID
	answers := map[uuid.UUID]reader.Answers{}
	for _, m := range messages {
		if m.obsolete {
			obsolete = append(obsolete, m.mail.ID)
		} else {
			answers[m.mail.ID] = reader.Answers{Replies: m.mail.Replies, Open: m.open}
		}
	}
	return a.reader.Answered(ctx, run, answers, obsolete)
}
