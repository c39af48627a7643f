package asker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/reader"
)

// Writer writes texts: a language model on the owner's own machines.
type Writer interface {
	Ask(ctx context.Context, q model.Question) (model.Answer, error)
}

const (
	// maxTexts limits the texts written before new mail is read, and maxTries
	// the attempts for a text.
	maxTexts = 4
	maxTries = 2
	// shortBody is the length to which a message is cut if it does not fit the
	// model's context.
	shortBody = 1500
)

// dueText is a requested text.
type dueText struct {
	number int64
	about  reader.Stored
	tried  int
	kind   draft.Kind
	source draft.Source
	// target is the whole message, which a reply needs.
	target plan.Target
}

// written is the result of a text: the text, or a problem for people.
type written struct {
	text, problem, model string
	// waits reports whether no server is available now.
	waits bool
}

// Write writes some of the requested texts. It reports whether more can be
// written now. No transaction is open while a model writes.
func (a *Asker) Write(ctx context.Context, run *reader.Run) (more bool, err error) {
	due, err := a.textsDue(ctx)
	if err != nil || len(due) == 0 {
		return false, err
	}
	ends := make([]written, len(due))
	var all sync.WaitGroup
	for i, d := range due {
		// The reader takes one call at a time; models take several.
		if ends[i].problem, err = a.prepare(ctx, d); err != nil {
			break
		}
		if ends[i].problem == "" {
			all.Go(func() { ends[i] = a.write(ctx, d) })
		}
	}
	all.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return false, err
	}
	more = len(due) == maxTexts
	for i, d := range due {
		if ends[i].waits {
			more = false
			continue
		}
		if err := a.endText(ctx, run, d, ends[i]); err != nil {
			return false, err
		}
	}
	return more, nil
}

// prepare reads the message of a reply for its recipients, and the examples of its
// style. It returns the
// problem if the text cannot be written, or "".
func (a *Asker) prepare(ctx context.Context, d *dueText) (problem string, err error) {
	decision, found := d.about.Decision, d.about.Found
	switch {
	case a.cfg.Writer == nil:
		return "no model is configured for texts (tier t3 of COUNTERSIGN_TRIAGE_MODELS)", nil
	case found.Injection:
		return "the message gives instructions to an assistant", nil
	case found.Phishing:
		return "the message may be phishing", nil
	case d.kind == draft.Summary:
		return "", nil
	case found.Suspicious:
		return "the message is suspicious", nil
	case !a.lease.Account.Proposes():
		return "the account names no source to propose a draft for", nil
	case decision.Allowed < decide.L1:
		return fmt.Sprintf("drafts are written from %v, and %v is allowed", decide.L1, decision.Allowed), nil
	}
	if d.target, problem, err = a.reader.Target(ctx, d.about); err == nil && problem == "" {
		d.source.Examples, err = a.examples(ctx, d)
	}
	return problem, err
}

// write writes a text.
func (a *Asker) write(ctx context.Context, d *dueText) written {
	source := d.source
	answer, err := a.writeOnce(ctx, d.kind, source)
	if failure, ok := errors.AsType[*model.Error](err); ok && failure.Kind == model.TooLong {
		source.Body, source.Examples = postgres.Clip(source.Body, shortBody), nil
		answer, err = a.writeOnce(ctx, d.kind, source)
	}
	failure, ok := errors.AsType[*model.Error](err)
	switch {
	case ok && slices.Contains([]model.Kind{model.Cut, model.Invalid, model.TooLong}, failure.Kind):
		if d.tried+1 < maxTries {
			return written{}
		}
		return written{problem: "the model returned no usable text: " + string(failure.Kind)}
	case err != nil:
		return written{waits: true}
	}
	text, err := d.kind.Text(answer.Text, a.lease.Account.Texts)
	if err != nil {
		return written{problem: err.Error()}
	}
	return written{text: text, model: answer.Model}
}

func (a *Asker) writeOnce(ctx context.Context, kind draft.Kind, source draft.Source) (model.Answer, error) {
	q, err := kind.Question(source)
	if err != nil {
		return model.Answer{}, err
	}
	return a.cfg.Writer.Ask(ctx, q)
}

// endText stores the result of a text and proposes a draft in one transaction.
func (a *Asker) endText(ctx context.Context, run *reader.Run, d *dueText, w written) error {
	err := a.lease.Write(ctx, func(tx pgx.Tx) error {
		if w.text == "" && w.problem == "" {
			return a.putTried(ctx, tx, d)
		}
		end, proposal := w, plan.Proposal{}
		if d.kind == draft.Reply && w.text != "" {
			var err error
			if proposal, err = a.answer(d, w); err != nil {
				end.problem = "the draft is not proposed: " + err.Error()
			}
		}
		if ended, err := a.putText(ctx, tx, d, end, proposal.ExternalID); err != nil || !ended || proposal.ExternalID == "" {
			return err
		}
		return a.reader.Propose(ctx, tx, run, d.about.ID, proposal)
	})
	if err == nil {
		a.cfg.Metrics.Text(ctx, string(d.kind), w.outcome())
		a.lease.Log.DebugContext(ctx, "text about a message", slog.String("message_id", d.about.ID.String()),
			slog.String("kind", string(d.kind)), slog.String("outcome", w.outcome()))
	}
	return err
}

// answer returns the proposal of a draft. A person must approve it, unless the
// decision allowed it without approval.
func (a *Asker) answer(d *dueText, w written) (plan.Proposal, error) {
	want := d.about.Decision.Want(decide.Draft)
	return plan.Answer(w.text, d.number, want == nil || want.Confirm, d.target, a.lease.Account.Proposals)
}

// outcome returns the label of a metric.
func (w written) outcome() string {
	switch {
	case w.text != "":
		return "written"
	case w.problem != "":
		return "refused"
	}
	return "tried"
}
