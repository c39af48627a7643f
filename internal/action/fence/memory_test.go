package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// sharedMemory is a memory of all workers. While down is set it is not available.
type sharedMemory struct {
	mu    sync.Mutex
	notes map[string]string
	down  error
}

func (m *sharedMemory) Read(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := make(map[string]string)
	for name, note := range m.notes {
		copied[name] = note
	}
	return copied, m.down
}

func (m *sharedMemory) Write(_ context.Context, name, note string, remove []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range remove {
		delete(m.notes, other)
	}
	m.notes[name] = note
	return m.down
}

// TestNotesShowAWorkerThatStartedAfterThePoint has the database lose all that it knew of a
// worker. A survivor finds its note, and a recovery waits for its report.
func TestNotesShowAWorkerThatStartedAfterThePoint(t *testing.T) {
	t.Parallel()
	db, cfg := dbtest.DB(t), fence.Config{Memory: &sharedMemory{notes: map[string]string{}}}
	fx, f, late := outboxtest.NewIn(t, db), newFixture(t, db, cfg), newFixture(t, db, cfg)
	f.is(fence.StateOpen)
	f.commit()
	f.is(fence.StateOpen)
	fx.Queue(envelope.EffectOnce, 2)
	late.is(fence.StateOpen)
	late.commit()
	late.is(fence.StateOpen) // it writes its note
	f.exec("DELETE FROM workers WHERE worker = $1", late.loop.Next().Worker.String())
	f.exec("DELETE FROM worker_commits WHERE worker = $1", late.loop.Next().Worker.String())
	f.restart()

	f.is(fence.StateHeld) // it lost nothing itself

	if p := prepare(fx); p.Reason != fence.ReasonLost || p.Workers != 2 || p.Silent != 1 || p.Unknown != 2 || p.Sendable != 0 {
		t.Errorf("before its report: %+v, want one of two workers silent, and two unknown", p.Recovery)
	}
	late.is(fence.StateHeld)
	if p := prepare(fx); p.Silent != 0 || p.Unknown != 0 || p.Sendable != 2 {
		t.Errorf("after its report: %+v, want two that go on", p.Recovery)
	}
}

// TestNotesOutliveTheWorkers has all workers end, or crash, and the database set back.
func TestNotesOutliveTheWorkers(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]bool{"they ended": false, "they crashed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, memory := dbtest.DB(t), &sharedMemory{notes: map[string]string{}}
			cfg := fence.Config{Memory: memory}
			fx, f := outboxtest.NewIn(t, db), newFixture(t, db, cfg)
			fx.Queue(envelope.EffectOnce, 2)
			f.is(fence.StateOpen)
			f.commit()
			f.is(fence.StateOpen)
			if !crash {
				f.commit()
				run(t, f.guard, func() {})
			}
			newFixture(t, db, cfg).is(fence.StateOpen) // nothing is missing
			f.exec("UPDATE worker_commits SET seq = seq - 1")
			f.restart()

			newFixture(t, db, cfg).is(fence.StateHeld)

			if why := f.why(); !strings.HasPrefix(why, "held lost: commits are missing") {
				t.Error(why)
			}
			if p := prepare(fx); p.Unknown != 2 || p.Silent == 0 {
				t.Errorf("Prepare = %+v, want two unknown", p.Recovery)
			}
			if _, done, err := apply(t, db, fence.Recovery{}); err != nil || !done {
				t.Fatalf("Apply = %t, %v", done, err)
			}
			newFixture(t, db, cfg).is(fence.StateOpen) // the notes are of the database before
			other := newFixture(t, dbtest.DB(t), cfg)
			other.exec("UPDATE fence SET database_id = gen_random_uuid()") // as a migration does, and a copy of a template does not
			other.is(fence.StateHeld)
			if why := other.why(); !strings.HasPrefix(why, "new") {
				t.Errorf("notes of another database hold this one: %s", why)
			}
		})
	}
}

func TestNothingIsClaimedUntilTheNotesAreRead(t *testing.T) {
	t.Parallel()
	db, memory := dbtest.DB(t), &sharedMemory{notes: map[string]string{}}
	f := newFixture(t, db, fence.Config{Memory: memory})
	f.is(fence.StateOpen)
	f.restart()
	memory.down = errors.New("the memory is away")

	_, err := f.guard.Check(t.Context())

	if err == nil || f.loop.Next().Epoch > 0 {
		t.Errorf("Check = %v, and it claims in epoch %d", err, f.loop.Next().Epoch)
	}
	memory.down = nil
	f.is(fence.StateOpen)
	f.is(fence.StateOpen) // in the new epoch
	memory.down = errors.New("the memory is away")
	f.commit()
	f.is(fence.StateOpen) // a note that cannot be written changes nothing
}

// TestOldNotesAreRemoved has notes of ended processes, and one that is no note.
func TestOldNotesAreRemoved(t *testing.T) {
	t.Parallel()
	db, memory := dbtest.DB(t), &sharedMemory{notes: map[string]string{}}
	f := newFixture(t, db, fence.Config{Memory: memory})
	put := func(age time.Duration) string {
		id := uuid.NewString()
		text, err := json.Marshal(map[string]any{"worker": id, "at": time.Now().Add(-age), "database_id": uuid.Nil})
		if err != nil {
			t.Fatal(err)
		}
		memory.notes[id] = string(text)
		return id
	}
	old, recent := put(40*24*time.Hour), put(24*time.Hour)
	f.is(fence.StateOpen)
	f.commit()
	f.is(fence.StateOpen)

	if _, ok := memory.notes[old]; ok || memory.notes[recent] == "" || len(memory.notes) != 2 {
		t.Errorf("the notes are %v", memory.notes)
	}
	memory.notes["x"] = "{}"
	if _, err := newFixture(t, db, fence.Config{Memory: memory}).guard.Check(t.Context()); err == nil {
		t.Error("an invalid note is ignored")
	}
}

// TestAReportCountsForOneRecovery has a worker live through two losses, and die in the
// second.
func TestAReportCountsForOneRecovery(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	fx, f, dies := outboxtest.NewIn(t, db), newFixture(t, db, fence.Config{}), newFixture(t, db, fence.Config{})
	lose := func() {
		f.is(fence.StateOpen)
		f.commit()
		dies.is(fence.StateOpen)
		f.restart()
		f.exec("UPDATE worker_commits SET seq = 0")
		f.is(fence.StateHeld)
	}
	lose()
	dies.is(fence.StateHeld)
	if _, done, err := apply(t, db, fence.Recovery{}); err != nil || !done {
		t.Fatalf("Apply = %t, %v", done, err)
	}

	lose()

	if p := prepare(fx); p.Silent != 1 {
		t.Errorf("Prepare = %+v, want one silent worker", p.Recovery)
	}
}
