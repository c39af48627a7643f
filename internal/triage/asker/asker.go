// Package asker asks language models about the messages of an account that rules
// and the embedded models leave open, and has them decided again with the answers.
// It also has models write summaries and drafts. A stop keeps questions from
// delaying new mail.
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
	// askedItems is about how many messages models are asked at once, lateItems how
	// many are decided without their answers at once, and stepTime after how long no
	// more questions are begun: then comes what is new.
	askedItems = 32
	lateItems  = 50
	stepTime   = 5 * time.Second
	// firstLook is how long a cycle waits at most until it is known which models can
	// be asked.
	firstLook = 10 * time.Second
	// onceLook is how long a reading that is done once waits at most for models that
	// may be loading.
	onceLook = 5 * time.Minute
	// stopGrace is how long questions go on while new mail waits: twice as long after
	// each time that all were given up, up to maxGivenUp times, so that a slow server
	// has its turn too.
	stopGrace  = 3 * time.Second
	maxGivenUp = 5
	// maxAsked bounds the characters of a message that questions are made of.
	maxAsked = 8000
)

// Config configures an Asker. Metrics and Tracer are required.
type Config struct {
	// Models are asked; nil asks nothing.
	Models *Models
	// Writer writes summaries and drafts; nil writes none.
	Writer Writer
	// Withhold is how long proposals wait for answers at most.
	Withhold time.Duration
	Metrics  *measure.Metrics
	Tracer   trace.Tracer
}

// Asker asks about the messages of one account.
type Asker struct {
	cfg    Config
	lease  *lease.Lease
	reader *reader.Reader
	// interrupt calls stop when there is something else to do, until ctx ends; nil
	// if nothing comes before questions.
	interrupt func(ctx context.Context, stop func())
	// down are tiers that could not be asked in this cycle, and why.
	down map[cascade.Tier]sight
	// givenUp counts the steps in a row in which no model answered.
	givenUp int
}

// New returns an Asker about what a reader reads. interrupt calls stop when there
// is something else to do, until ctx ends; without it models are asked to the end.
func New(cfg Config, l *lease.Lease, r *reader.Reader, interrupt func(ctx context.Context, stop func())) *Asker {
	return &Asker{cfg: cfg, lease: l, reader: r, interrupt: interrupt}
}

// Begin begins a cycle of reading. It waits a little until it is known which models
// can be asked.
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

// Recovered reports whether a tier can be asked again that could not be in this
// cycle.
func (a *Asker) Recovered() bool {
	for tier, down := range a.down {
		if a.cfg.Models.recoveredSince(tier, down.at) {
			return true
		}
	}
	return false
}

// askable returns the tiers that can be asked now, and notes the others.
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

// failed notes that a tier cannot be asked in this cycle any more, and reports
// whether that is new.
func (a *Asker) failed(tier cascade.Tier, kind model.Kind) bool {
	if _, ok := a.down[tier]; ok {
		return false
	}
	a.down[tier] = sight{kind, time.Now()}
	return true
}

// Ask asks models about messages, newest first, and has those decided again that
// are answered. It stops between two questions when it is interrupted, and after a
// while. Then those are decided that have waited for too long, or for models that
// cannot be asked. It reports whether there is more to do now.
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

// pending is a message about which models are to be asked.
type pending struct {
	mail cascade.Mail
	open []cascade.Tier
	// withheld reports whether nothing was proposed until then, and obsolete whether
	// the owner has touched the message, or it is in no folder any more.
	withheld, obsolete bool
}

// askSome asks about some messages. It reports whether there may be more that can
// be asked.
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

// question asks with no transaction open. An interruption stops it: no further
// question is begun, and those that take long are given up.
func (a *Asker) question(ctx context.Context, stop *stop, mails []cascade.Mail) []cascade.Result {
	ctx, cancel := context.WithCancel(ctx)
	var interrupting sync.WaitGroup
	defer interrupting.Wait()
	defer cancel()
	if a.interrupt != nil {
		interrupting.Go(func() {
			a.interrupt(ctx, func() {
				stop.called.Store(true)
				timer := time.AfterFunc(stopGrace<<min(a.givenUp, maxGivenUp), cancel)
				context.AfterFunc(ctx, func() { timer.Stop() })
			})
		})
	}
	return a.cfg.Models.cascade(stop).Ask(ctx, mails)
}

// answered stores what models answered, and decides again about the messages of
// which nothing is left to ask, or can be asked now. It reports whether anything
// is otherwise than before.
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

// release decides about some of the messages of which nothing was proposed until
// models were asked, and that have waited for long enough, or for a model that
// cannot be asked. It reports whether there may be more.
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

// decide has messages decided again with what models answered. About those that
// are obsolete nothing is asked any more.
func (a *Asker) decide(ctx context.Context, run *reader.Run, those []pending) error {
	if len(those) == 0 {
		return nil
	}
	var obsolete []uuid.UUID
	answers := map[uuid.UUID]reader.Answers{}
	for _, m := range those {
		if m.obsolete {
			obsolete = append(obsolete, m.mail.ID)
		} else {
			answers[m.mail.ID] = reader.Answers{Replies: m.mail.Replies, Open: m.open}
		}
	}
	return a.reader.Answered(ctx, run, answers, obsolete)
}
