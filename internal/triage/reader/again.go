package reader

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

const (
	// maxOutcomes limits the outcomes of proposals taken in one transaction,
	// and maxCorrected the newest messages among which those of a corrected
	// sender are searched.
	maxOutcomes  = 1000
	maxCorrected = 2000
)

// Stored is a message that was decided before, with the input for deciding
// again.
type Stored struct {
	ID uuid.UUID
	// Decision is the last decision, and Found the result of the rules for it.
	Decision *decide.Decision
	Found    signal.Result

	thread   uuid.UUID
	identity string
	reason   reason
	earlier  decide.Earlier
	proposed []plan.Part
	answers  Answers
	// judged are the copies that the decision joins, and list is the list of
	// the first copy.
	judged []string
	list   string
	// folder and item are the message's place; the key is empty if it has none.
	folder mailbox.Folder
	item   mailbox.Item
}

// Answers are the answers of models about a message, and the tiers that are
// still to be asked.
type Answers struct {
	Replies []cascade.Reply
	Open    []cascade.Tier
}

// owner applies the owner's actions: the outcomes of proposals, and the
// messages that are to be decided again for a reason. It reads those again,
// since only the mailbox has the full message.
func (r *Reader) owner(ctx context.Context, run *Run) error {
	for {
		var due []Stored
		var of outcomes
		err := r.lease.Write(ctx, func(tx pgx.Tx) (err error) {
			if of, err = takeOutcomes(ctx, tx, r.lease, run); err == nil {
				due, err = r.dueAgain(ctx, tx)
			}
			return err
		})
		if err == nil && of.expired > 0 {
			run.counted = run.counted || of.repeated > 0
			r.lease.Log.WarnContext(ctx, "proposals expired undecided", slog.Int("expired", of.expired), slog.Int("proposed_again", of.repeated))
		}
		if err != nil || len(due) == 0 && of.taken < maxOutcomes {
			return err
		}
		if err := r.againAll(ctx, run, due); err != nil {
			return err
		}
	}
}

// againAll decides messages again, folder by folder.
func (r *Reader) againAll(ctx context.Context, run *Run, due []Stored) error {
	byFolder := map[mailbox.Folder][]Stored{}
	for _, d := range due {
		byFolder[d.folder] = append(byFolder[d.folder], d)
	}
	for f, stored := range byFolder {
		if err := r.again(ctx, run, f, stored); err != nil {
			return err
		}
	}
	return nil
}

// again decides the messages of a folder again. Messages that are gone or
// unreadable keep their decision, and their questions are dropped.
func (r *Reader) again(ctx context.Context, run *Run, f mailbox.Folder, due []Stored) error {
	again := make(map[string]Stored, len(due))
	var items []mailbox.Item
	var kept []mail
	ids := make([]uuid.UUID, len(due))
	decided := map[uuid.UUID]bool{}
	for i, d := range due {
		again[d.identity], ids[i] = d, d.ID
		if m, ok := r.recent.take(d); ok {
			kept = append(kept, m)
		} else if d.item.Key != "" {
			items = append(items, d.item)
		}
	}
	parts := chunks(items)
	if len(parts) == 0 && len(kept) > 0 {
		parts = [][]mailbox.Item{nil}
	}
	for i, part := range parts {
		b := batch{folder: f, items: part, again: again, decided: decided}
		if i == 0 {
			b.kept = kept
		}
		err := r.commit(ctx, run, b)
		if errors.Is(err, mailbox.ErrNoFolder) {
			break // the owner removed the folder with its messages
		}
		if err != nil {
			return err
		}
	}
	return r.lease.Write(ctx, func(tx pgx.Tx) error { return decidedAgain(ctx, tx, r.lease, ids, decided) })
}

// Answered decides messages again with the answers of models, and drops the
// questions of obsolete ones.
func (r *Reader) Answered(ctx context.Context, run *Run, answers map[uuid.UUID]Answers, obsolete []uuid.UUID) error {
	var due []Stored
	if err := r.lease.Write(ctx, func(tx pgx.Tx) (err error) {
		if err := dropQuestions(ctx, tx, r.lease, obsolete); err != nil {
			return err
		}
		due, err = r.Stored(ctx, tx, slices.Collect(maps.Keys(answers)))
		return err
	}); err != nil {
		return err
	}
	for i := range due {
		due[i].reason, due[i].answers = reasonAsked, answers[due[i].ID]
	}
	return r.againAll(ctx, run, due)
}

// Target reads a whole message for proposals about it. It returns a problem if
// the message is gone.
func (r *Reader) Target(ctx context.Context, s Stored) (t plan.Target, problem string, err error) {
	if s.item.Key == "" {
		return t, "the message is in no folder that triage reads", nil
	}
	err = r.mailbox.Read(ctx, []mailbox.Item{s.item}, func(it mailbox.Item, raw []byte, err error) error {
		if err == nil {
			t = plan.Target{At: mailbox.State{Location: s.item.Location, Flags: s.item.Flags}, Message: message.Parse(raw), Built: it.Built}
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
	if err == nil && (t.Message == nil || string(t.Message.Identity[:]) != s.identity) {
		problem = "the message has moved or was deleted"
	}
	return t, problem, err
}
