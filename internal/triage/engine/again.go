package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

const (
	// maxOutcomes is how many outcomes of proposals are taken at once, and
	// maxCorrected among how many of the newest messages those of a corrected sender
	// are looked for.
	maxOutcomes  = 1000
	maxCorrected = 2000
)

// dueMessage is a message that is to be decided again.
type dueMessage struct {
	id, thread uuid.UUID
	identity   string
	reason     reason
	earlier    decide.Earlier
	proposed   []plan.Part
	// replies are what models answered about it.
	replies []cascade.Reply
	// last is what was decided about it, found which flags it had, judged the copies
	// that this joins, and list the list of the copy that came first.
	last   *decide.Decision
	found  signals
	judged []string
	list   string
	// open is what is left to ask about it, if that was the reason.
	open []cascade.Tier
	// folder and item say where it lies; the key is empty if nowhere.
	folder mailbox.Folder
	item   mailbox.Item
}

// owner takes into account what the owner did: outcomes of proposals, and messages
// for which there is a reason to decide about them again. Those are read again,
// since only the mailbox has the whole of them.
func (p *pass) owner(ctx context.Context) error {
	for {
		var due []dueMessage
		var of outcomes
		err := p.write(ctx, func(tx pgx.Tx) (err error) {
			if of, err = takeOutcomes(ctx, tx, p); err == nil {
				due, err = dueAgain(ctx, tx, p.run)
			}
			return err
		})
		if err == nil && of.expired > 0 {
			p.counted = p.counted || of.repeated > 0
			p.log.WarnContext(ctx, "proposals expired undecided", slog.Int("expired", of.expired), slog.Int("proposed_again", of.repeated))
		}
		if err != nil || len(due) == 0 && of.taken < maxOutcomes {
			return err
		}
		if err := p.againAll(ctx, due); err != nil {
			return err
		}
	}
}

// againAll decides again about messages, folder by folder.
func (p *pass) againAll(ctx context.Context, due []dueMessage) error {
	byFolder := map[mailbox.Folder][]dueMessage{}
	for _, d := range due {
		byFolder[d.folder] = append(byFolder[d.folder], d)
	}
	for f, those := range byFolder {
		if err := p.again(ctx, f, those); err != nil {
			return err
		}
	}
	return nil
}

// again decides again about messages of a folder. Those that lie nowhere any more,
// or cannot be read, stay as they were decided, and nothing is asked about them.
func (p *pass) again(ctx context.Context, f mailbox.Folder, due []dueMessage) error {
	again := make(map[string]dueMessage, len(due))
	var items []mailbox.Item
	var kept []mail
	ids := make([]uuid.UUID, len(due))
	decided := map[uuid.UUID]bool{}
	for i, d := range due {
		again[d.identity], ids[i] = d, d.id
		if m, ok := p.recent.take(d); ok {
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
		b := batch{folder: f, items: part, again: again, done: func(c *chunk) {
			for _, d := range c.decisions {
				decided[d.Message] = true
			}
		}}
		if i == 0 {
			b.kept = kept
		}
		err := p.commit(ctx, b)
		if errors.Is(err, mailbox.ErrNoFolder) {
			break // its owner removed it, with the messages
		}
		if err != nil {
			return err
		}
	}
	return p.write(ctx, func(tx pgx.Tx) error { return decidedAgain(ctx, tx, p.run, ids, decided) })
}

// looked records that all folders were looked at, at most every few seconds.
func (r *run) looked(ctx context.Context) error {
	const often = 10 * time.Second
	if time.Since(r.lookedAt) < often {
		return nil
	}
	r.lookedAt = time.Now()
	return r.engine.tx(ctx, func(tx pgx.Tx) error {
		return errors.Join(readAll(ctx, tx, r), modelStates(ctx, tx, r))
	})
}
