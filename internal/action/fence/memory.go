package fence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Memory is a place outside the database, which all workers share, with a note of each.
type Memory interface {
	// Read returns all notes by their names.
	Read(ctx context.Context) (map[string]string, error)
	// Write sets a note, and removes others.
	Write(ctx context.Context, name, note string, remove []string) error
}

const (
	// noteEvery is the pause between two notes of a process, and keptNotes and mostNotes bound
	// for how long notes are kept, and how many.
	noteEvery = 5 * time.Second
	keptNotes = 30 * 24 * time.Hour
	mostNotes = 100
)

// note is the memory of a process at a time.
type note struct {
	memory
	Name  string        `json:"name"`
	Lease time.Duration `json:"lease_ns"`
	At    time.Time     `json:"at"`
}

// server is what notes were compared with.
type server struct {
	database   uuid.UUID
	epoch      int64
	held, same bool
}

// readNotes returns the notes of other processes, the newest first.
func (g *Guard) readNotes(ctx context.Context) ([]note, error) {
	texts, err := g.cfg.Memory.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the notes of workers: %w", err)
	}
	var notes []note
	for name, text := range texts {
		var n note
		if err := json.Unmarshal([]byte(text), &n); err != nil || n.Worker.String() != name {
			return nil, fmt.Errorf("the note %s of a worker is invalid; remove it from the memory", name)
		}
		if n.Worker != g.worker {
			notes = append(notes, n)
		}
	}
	slices.SortFunc(notes, func(a, b note) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Worker.String(), b.Worker.String()))
	})
	return notes, nil
}

// compareNotes compares the notes of all processes with a server, once. If commits are
// missing it holds the database. It reports whether something changed.
func (g *Guard) compareNotes(ctx context.Context, r reading) (changed bool, err error) {
	now := server{r.Database, r.Epoch, r.State == StateHeld, r.SameServer}
	if g.cfg.Memory == nil || g.compared == now {
		return false, nil
	}
	notes, err := g.readNotes(ctx)
	if err != nil {
		return false, err
	}
	if len(notes) > 0 && g.database == uuid.Nil {
		g.database, g.earlier, changed = notes[0].Database, notes[0].Earlier, true // those of the newest
	}
	notes = slices.DeleteFunc(notes, func(n note) bool { return !n.knows(r.Database) })
	if len(notes) > 0 {
		held, err := g.holdFor(ctx, notes)
		if err != nil {
			return false, err
		}
		changed = changed || held
	}
	g.compared = now
	return changed, nil
}

// holdFor holds the database if commits of noted processes are missing. Until they report,
// these count as silent: nothing else here may show that they committed.
func (g *Guard) holdFor(ctx context.Context, notes []note) (held bool, err error) {
	err = postgres.InTx(ctx, g.db, postgres.Worker(), func(tx pgx.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		r, err := read(ctx, tx, g.worker)
		if err != nil {
			return err
		}
		there, err := commits(ctx, tx, notes)
		if err != nil {
			return err
		}
		detail := ""
		for _, n := range notes {
			missing := n.missing(there[n.Worker])
			if missing == "" || !n.knows(r.Database) {
				continue
			}
			detail = cmp.Or(detail, missing)
			if err := putNoted(ctx, tx, n); err != nil {
				return err
			}
		}
		if detail == "" || r.State == StateHeld {
			return nil
		}
		held = true
		return set(ctx, tx, envelope.Actor("worker/"+g.cfg.Name), &r.Status, StateHeld, ReasonLost, "commits are missing: "+detail)
	})
	return held, err
}

// write writes the note of this process, if something changed, at most as often as every
// noteEvery unless it ends. The first one removes old notes. A failure is logged: the next
// note has all of this one.
func (g *Guard) write(ctx context.Context, m memory, now time.Time, ends bool) {
	if g.cfg.Memory == nil || m.empty() || m.Worker != g.worker || !ends && now.Sub(g.noted) < noteEvery || maps.Equal(m.Commits, g.notedCommits) {
		return
	}
	var old []string
	if g.noted.IsZero() {
		notes, err := g.readNotes(ctx)
		if err != nil {
			g.cfg.Log.WarnContext(ctx, "old notes of workers are not removed", slog.Any("error", err))
		}
		for i, n := range notes {
			if i >= mostNotes || now.Sub(n.At) > keptNotes {
				old = append(old, n.Worker.String())
			}
		}
	}
	g.noted = now
	m.Database, m.Earlier = g.database, g.earlier
	text, err := json.Marshal(note{m, g.cfg.Name, g.cfg.Lease, now})
	if err == nil {
		err = g.cfg.Memory.Write(ctx, g.worker.String(), string(text), old)
	}
	if err != nil {
		g.cfg.Log.WarnContext(ctx, "the note of the worker is not written", slog.Any("error", err))
		return
	}
	g.notedCommits = m.Commits
}
