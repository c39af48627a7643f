package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// Writer writes texts: a language model on the owner's own machines.
type Writer interface {
	Ask(ctx context.Context, q model.Question) (model.Answer, error)
}

const (
	// maxTexts is how many texts are written before new mail is looked for again,
	// and maxTries how often a model is asked for one.
	maxTexts = 4
	maxTries = 2
	// shortBody is what is shown of a message that does not fit the model's context.
	shortBody = 1500
)

// dueText is a text that is to be written.
type dueText struct {
	number int64
	// about is its message, and where that lies.
	about    dueMessage
	tried    int
	kind     draft.Kind
	source   draft.Source
	decision decide.Decision
	signals  signals
	// message is the whole of it, which an answer needs.
	message *message.Message
}

// written is how a text ended: with a text, or with a problem for people.
type written struct {
	text, problem, model string
	// waits says that there is no server that answers now.
	waits bool
}

// wantTexts asks for the texts that the account wants without being asked.
func (c *chunk) wantTexts(ctx context.Context, tx pgx.Tx) error {
	if c.engine.cfg.Writer == nil {
		return nil
	}
	var messages []uuid.UUID
	var kinds []string
	want := func(d decisionRow, kind draft.Kind) {
		messages, kinds = append(messages, d.Message), append(kinds, string(kind))
	}
	for _, d := range c.decisions {
		if d.Withheld {
			continue // it is decided again with the answers of models
		}
		if c.account.Texts.Summaries == draft.Wanted && d.Bucket.NeedsOwner() && !d.Signals.Phishing && !d.Signals.Injection {
			want(d, draft.Summary)
		}
		if c.account.Texts.Drafts == draft.Wanted && c.account.Proposes() && wantsDraft(d.Decision) != nil {
			want(d, draft.Reply)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return askTexts(ctx, tx, c.run, messages, kinds)
}

// wantsDraft returns the draft that a decision wants.
func wantsDraft(d decide.Decision) *decide.Want {
	if at := slices.IndexFunc(d.Wants, func(w decide.Want) bool { return w.Action == decide.Draft }); at >= 0 {
		return &d.Wants[at]
	}
	return nil
}

// texts has some of the texts written that are waited for. It reports whether there
// may be more that can be written now. No transaction is open while a model writes.
func (p *pass) texts(ctx context.Context) (more bool, err error) {
	due, err := p.textsDue(ctx)
	if err != nil || len(due) == 0 {
		return false, err
	}
	examples, err := p.examples(ctx, due)
	if err != nil {
		return false, err
	}
	ends := make([]written, len(due))
	var all sync.WaitGroup
	for i, d := range due {
		// The reader takes one call at a time, models take several.
		if ends[i].problem, err = p.prepare(ctx, d); err != nil {
			break
		}
		if ends[i].problem == "" {
			all.Go(func() { ends[i] = p.ask(ctx, d, examples) })
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
		if err := p.endText(ctx, d, ends[i]); err != nil {
			return false, err
		}
	}
	return more, nil
}

// prepare reads the message of an answer, whose header says whom it goes to. It
// returns why a text is not written; empty if it is.
func (p *pass) prepare(ctx context.Context, d *dueText) (string, error) {
	switch {
	case p.engine.cfg.Writer == nil:
		return "no model is configured for texts (tier t3 of COUNTERSIGN_TRIAGE_MODELS)", nil
	case d.signals.Injection:
		return "the message gives instructions to an assistant", nil
	case d.signals.Phishing:
		return "the message may be phishing", nil
	case d.kind == draft.Summary:
		return "", nil
	case d.signals.Suspicious:
		return "the message is suspicious", nil
	case !p.account.Proposes():
		return "the account names no source to propose a draft for", nil
	case d.decision.Allowed < decide.L1:
		return fmt.Sprintf("drafts are written from %v, and %v is allowed", decide.L1, d.decision.Allowed), nil
	case d.about.item.Key == "":
		return "the message lies in no folder that is read", nil
	}
	err := p.reader.Read(ctx, []mailbox.Item{d.about.item}, func(it mailbox.Item, raw []byte, err error) error {
		if err == nil {
			d.message, d.about.item.Built = message.Parse(raw), it.Built
			return nil
		}
		if errors.Is(err, mailbox.ErrGone) || errors.Is(err, mailbox.ErrTooLarge) || errors.Is(err, mailbox.ErrUnreadable) {
			return nil
		}
		return err
	})
	if errors.Is(err, mailbox.ErrNoFolder) {
		err = nil
	}
	if err == nil && (d.message == nil || string(d.message.Identity[:]) != d.about.identity) {
		return "the message is not where it was any more", nil
	}
	return "", err
}

// ask has a text written.
func (p *pass) ask(ctx context.Context, d *dueText, examples []string) written {
	source := d.source
	if d.kind == draft.Reply {
		source.Examples = examples
	}
	answer, err := p.writeOnce(ctx, d.kind, source)
	if failure, ok := errors.AsType[*model.Error](err); ok && failure.Kind == model.TooLong {
		source.Body, source.Examples = clip(source.Body, shortBody), nil
		answer, err = p.writeOnce(ctx, d.kind, source)
	}
	failure, ok := errors.AsType[*model.Error](err)
	switch {
	case ok && slices.Contains([]model.Kind{model.Cut, model.Invalid, model.TooLong}, failure.Kind):
		if d.tried+1 < maxTries {
			return written{}
		}
		return written{problem: "the model gave no usable text: " + string(failure.Kind)}
	case err != nil:
		return written{waits: true}
	}
	text, err := d.kind.Text(answer.Text, p.account.Texts)
	if err != nil {
		return written{problem: err.Error()}
	}
	return written{text: text, model: answer.Model}
}

func (p *pass) writeOnce(ctx context.Context, kind draft.Kind, source draft.Source) (model.Answer, error) {
	q, err := kind.Question(source)
	if err != nil {
		return model.Answer{}, err
	}
	return p.engine.cfg.Writer.Ask(ctx, q)
}

// endText stores how a text ended, and proposes a draft, in one transaction.
func (p *pass) endText(ctx context.Context, d *dueText, w written) error {
	c := &chunk{pass: p}
	err := p.write(ctx, func(tx pgx.Tx) error {
		c.proposals, c.proposed = nil, 0
		if w.text == "" && w.problem == "" {
			return textTried(ctx, tx, p.run, d)
		}
		end, external := w, ""
		if d.kind == draft.Reply && w.text != "" {
			proposal, err := p.answer(d, w)
			if err != nil {
				end.problem = "the draft is not proposed: " + err.Error()
			} else {
				row, err := proposalRowOf(&mail{id: d.about.id}, proposal)
				if err != nil {
					return err
				}
				c.proposals, external = []proposalRow{row}, row.External
			}
		}
		if ended, err := endText(ctx, tx, p.run, d, end, external); err != nil || !ended {
			return err
		}
		return c.proposeText(ctx, tx)
	})
	if err == nil {
		p.counted = p.counted || c.proposed > 0
		p.engine.metrics.Text(ctx, string(d.kind), outcomeOfText(w))
		p.log.DebugContext(ctx, "text about a message", slog.String("message_id", d.about.id.String()),
			slog.String("kind", string(d.kind)), slog.String("outcome", outcomeOfText(w)))
	}
	return err
}

// answer returns the proposal of a draft. A person approves it unless the decision
// wanted it without.
func (p *pass) answer(d *dueText, w written) (plan.Proposal, error) {
	want := wantsDraft(d.decision)
	on := plan.Target{At: mailbox.State{Location: d.about.item.Location, Flags: d.about.item.Flags}, Message: d.message, Built: d.about.item.Built}
	return plan.Answer(w.text, d.number, want == nil || want.Confirm, on, p.account.Proposals)
}

func outcomeOfText(w written) string {
	switch {
	case w.text != "":
		return "written"
	case w.problem != "":
		return "refused"
	}
	return "tried"
}
