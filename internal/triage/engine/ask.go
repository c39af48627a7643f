package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

const (
	// askedItems is about how many messages models are asked at once, and stepTime
	// after how long no more questions are begun: then comes what is new.
	askedItems = 32
	stepTime   = 5 * time.Second
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

// kindLate is why a decision does without a tier that was not asked in time.
const kindLate model.Kind = "late"

// questions is what a decision takes from models, and what is left to ask.
type questions struct {
	replies []cascade.Reply
	open    []cascade.Tier
	// withheld says that nothing is proposed until then, and degraded which tiers
	// the decision does without, and why.
	withheld bool
	degraded string
	steps    []decide.Step
}

// questions returns what is asked about a message; again is what is known of one
// that was decided before. Nothing is asked about what its owner has touched.
func (c *chunk) questions(row messageRow, f decide.Facts, again *dueMessage) (q questions) {
	if again != nil {
		q.replies = again.replies
	}
	switch {
	case f.Earlier.Touched, c.engine.cfg.Models == nil:
	case again != nil && again.reason == reasonAsked:
		q.open = again.open
	default:
		q.open = c.engine.cfg.Models.wanted(cascade.Mail{
			ID: row.Message, Account: c.account.ID, Subject: row.Subject, Body: row.Body, Prediction: f.Prediction,
			Decision: decide.Decide(f), Signals: f.Signals, Settings: f.Settings, Replies: q.replies,
		})
	}
	var without []string
	for _, tier := range q.open {
		if kind := c.why(tier); kind != "" {
			without = append(without, fmt.Sprintf("%s: %s", tier, kind))
		}
	}
	switch asked := again != nil && again.reason == reasonAsked; {
	case len(q.open) == 0:
	case len(without) == 0 && !asked:
		q.withheld = true
		q.steps = []decide.Step{{Rule: "models", To: "withheld", Because: fmt.Sprintf("%s is asked first, and until then, at most for %v, nothing is proposed",
			tierList(q.open), c.engine.cfg.Withhold)}}
	case len(without) == 0:
		without = append(without, fmt.Sprintf("%s: %s", q.open[0], kindLate))
	}
	if len(without) > 0 {
		q.steps = []decide.Step{{Rule: "models", To: "degraded", Because: "decided without what is asked later, if its owner has not touched it until then: " + strings.Join(without, "; ")}}
	}
	for _, r := range q.replies {
		if r.Failed != "" {
			without = append(without, fmt.Sprintf("%s: %s", r.Tier, r.Failed))
		}
	}
	q.degraded = strings.Join(without, "; ")
	return q
}

// note adds to a row on what its decision rests.
func (q questions) note(d *decisionRow) {
	d.Tier, d.Degraded, d.Withheld = tierEmbedded, q.degraded, q.withheld
	d.Answers, d.Wanted = append([]cascade.Reply{}, q.replies...), append([]cascade.Tier{}, q.open...)
	for _, r := range q.replies {
		if r.Answered() && slices.Index(cascade.Tiers(), r.Tier) >= slices.Index(cascade.Tiers(), d.Tier) {
			d.Tier, d.Model, d.Prompt = r.Tier, r.Model, r.Prompt
		}
	}
}

// tierEmbedded is the tier of a decision that rests on no language model.
const tierEmbedded cascade.Tier = "embedded"

// why says why a tier cannot be asked now; empty if it can.
func (r *run) why(tier cascade.Tier) model.Kind {
	if down, ok := r.down[tier]; ok {
		return down.kind
	}
	return r.engine.cfg.Models.why(tier)
}

// askable returns the tiers that can be asked now, and notes the others.
func (r *run) askable() (tiers []cascade.Tier) {
	for _, tier := range r.engine.cfg.Models.configured() {
		if kind := r.why(tier); kind != "" {
			r.goneDown(tier, kind)
		} else {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// goneDown notes that a tier cannot be asked in this cycle any more, and reports
// whether that is new.
func (r *run) goneDown(tier cascade.Tier, kind model.Kind) bool {
	if _, ok := r.down[tier]; ok {
		return false
	}
	r.down[tier] = sight{kind, time.Now()}
	return true
}

// canAskAgain reports whether a tier can be asked again that could not be in this
// cycle.
func (r *run) canAskAgain() bool {
	for tier, down := range r.down {
		if r.engine.cfg.Models.backSince(tier, down.at) {
			return true
		}
	}
	return false
}

// askModels asks models about messages, newest first, and decides again about those
// that are answered. It stops between two questions when there is new mail, and
// after a while. Then it decides about those that have waited for too long, or for
// models that cannot be asked. It reports whether there is more to do now.
func (p *pass) askModels(ctx context.Context) (more bool, err error) {
	if p.once {
		p.engine.cfg.Models.await(ctx, onceLook)
	}
	stop := &stop{until: time.Now().Add(stepTime)}
	for more = true; more && !stop.over(); {
		if more, err = p.askSome(ctx, stop); err != nil {
			return false, err
		}
	}
	released, err := p.release(ctx)
	return more || released, err
}

// pending is a message about which models are to be asked.
type pending struct {
	cascade.Mail

	open []cascade.Tier
	// withheld says that nothing was proposed until then. obsolete says that its owner
	// has touched it, or that it lies nowhere any more.
	withheld, obsolete bool
}

// askSome asks about some messages. It reports whether there may be more that can
// be asked.
func (p *pass) askSome(ctx context.Context, stop *stop) (more bool, err error) {
	tiers := p.askable()
	if len(tiers) == 0 {
		return false, nil
	}
	var due []pending
	if err := p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		due, err = pendingMail(ctx, tx, p.run, tiers, false, askedItems)
		return err
	}); err != nil || len(due) == 0 {
		return false, err
	}
	ctx, span := p.engine.cfg.Tracer.Start(ctx, "ask models", trace.WithAttributes(attribute.Int("messages", len(due))))
	defer func() { endSpan(span, err) }()
	var mails []cascade.Mail
	for _, m := range due {
		if !m.obsolete {
			mails = append(mails, m.Mail)
		}
	}
	results := p.question(ctx, stop, mails)
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	return p.answered(ctx, due, results)
}

// question asks with no transaction open. New mail stops it: no further question
// is begun, and those that take long are given up.
func (p *pass) question(ctx context.Context, stop *stop, mails []cascade.Mail) []cascade.Result {
	ctx, cancel := context.WithCancel(ctx)
	var signals sync.WaitGroup
	defer signals.Wait()
	defer cancel()
	call := func() {
		stop.called.Store(true)
		timer := time.AfterFunc(stopGrace<<min(p.givenUp, maxGivenUp), cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	if !p.once {
		signals.Go(func() {
			if p.reader.Wait(ctx, p.folderNames()) == nil {
				call()
			}
		})
		signals.Go(func() {
			select {
			case <-p.engine.yields:
				p.yielded = true
				call()
			case <-ctx.Done():
			}
		})
	}
	return p.engine.cfg.Models.cascade(stop).Ask(ctx, mails)
}

// answered stores what models answered, and decides again about the messages of
// which nothing is left to ask, or can be asked now. It reports whether anything
// is otherwise than before.
func (p *pass) answered(ctx context.Context, due []pending, results []cascade.Result) (progress bool, err error) {
	was := map[uuid.UUID]pending{}
	var again []pending
	for _, m := range due {
		if was[m.ID] = m; m.obsolete {
			again = append(again, m)
		}
	}
	var stopped []pending
	for _, r := range results {
		m, kind := was[r.ID], r.Kind
		if kind != "" && len(r.Open) > 0 && p.goneDown(r.Open[0], kind) {
			progress = true
		}
		same := len(r.Replies) == len(m.Replies) && slices.Equal(r.Open, m.open)
		m.Replies, m.open = r.Replies, r.Open
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
		p.givenUp = 0
	} else if len(results) > 0 {
		p.givenUp++
	}
	p.log.DebugContext(ctx, "models asked", slog.Int("messages", len(due)), slog.Int("decided", len(again)), slog.Int("stopped", len(stopped)))
	if len(stopped) > 0 {
		if err := p.write(ctx, func(tx pgx.Tx) error { return putAnswers(ctx, tx, p.run, stopped) }); err != nil {
			return false, err
		}
	}
	return progress || len(again) > 0, p.decideAsked(ctx, again)
}

// release decides about some of the messages of which nothing was proposed until
// models were asked, and that have waited for long enough, or for a model that
// cannot be asked. It reports whether there may be more.
func (p *pass) release(ctx context.Context) (more bool, err error) {
	var late []pending
	err = p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		late, err = pendingMail(ctx, tx, p.run, p.askable(), true, chunkItems)
		return err
	})
	if err != nil || len(late) == 0 {
		return false, err
	}
	return len(late) == chunkItems, p.decideAsked(ctx, late)
}

// decideAsked decides again about messages with what models answered. About those
// that are obsolete nothing is asked any more.
func (p *pass) decideAsked(ctx context.Context, those []pending) error {
	if len(those) == 0 {
		return nil
	}
	var ids, obsolete []uuid.UUID
	of := map[uuid.UUID]pending{}
	for _, m := range those {
		if of[m.ID] = m; m.obsolete {
			obsolete = append(obsolete, m.ID)
		} else {
			ids = append(ids, m.ID)
		}
	}
	var due []dueMessage
	if err := p.write(ctx, func(tx pgx.Tx) (err error) {
		if err := dropQuestions(ctx, tx, p.run, obsolete); err != nil {
			return err
		}
		due, err = dueMessages(ctx, tx, p.run, ids)
		return err
	}); err != nil {
		return err
	}
	for i := range due {
		m := of[due[i].id]
		due[i].reason, due[i].replies, due[i].open = reasonAsked, m.Replies, m.open
	}
	return p.againAll(ctx, due)
}

// folderNames returns the names of the folders that are read.
func (r *run) folderNames() []string {
	names := make([]string, len(r.folders))
	for i, f := range r.folders {
		names[i] = f.Name
	}
	return names
}
