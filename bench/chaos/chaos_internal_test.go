package main

import (
	"bytes"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

func TestMain(m *testing.M) {
	if code, ok := asChild(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestChaos is the real thing, only smaller: real processes, real kills, and a
// database that crashes.
func TestChaos(t *testing.T) {
	t.Parallel()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse([]string{
		"-n", "300", "-kill-every", "300ms", "-lease", "2s", "-over", "1s", "-call", "15ms", "-seed", "3", "-worker", workerSelf,
		"-out", t.TempDir() + "/chaos.jsonl",
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	// A crash of the server, not of the machine, so that nothing has to reach
	// the disk; but what is committed has to reach the operating system.
	o.private.Fast, o.private.Settings = true, map[string]string{"synchronous_commit": "on"}
	var out bytes.Buffer

	broken, err := o.try(ctx, &out)

	if err != nil || broken {
		t.Errorf("try() = %t, %v, want false and no error; it said:\n%s", broken, err, out.String())
	}
	t.Log(out.String())
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()

	for _, args := range []string{
		"-class neither", "-n 0", "-workers 0", "-concurrency 0", "-kill-every 0s", "-lease 10ms", "-call 0s", "-busy 0.9", "more",
		"-unheard",
	} {
		if _, err := parse(strings.Fields(args), new(bytes.Buffer)); err == nil {
			t.Errorf("parse(%q) = nil, want an error", args)
		}
	}
}

// TestJudge shows each property something that breaks it.
func TestJudge(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	good := func(class envelope.Effect) evidence {
		return evidence{
			plan:      plan{class: class, n: 1, concurrency: 1},
			kills:     1,
			envelopes: []found{{External: "n-0", Action: id, Status: "sent", Ends: 1}},
			world:     tallied{Effects: map[int]int{0: 1}},
			inHand:    map[uuid.UUID]bool{id: true},
		}
	}
	for _, row := range []struct {
		name   string
		class  envelope.Effect
		change func(*evidence)
		want   []int
	}{
		{"nothing", envelope.EffectOnce, func(*evidence) {}, nil},
		{"an envelope is not there", envelope.EffectOnce, func(e *evidence) { e.envelopes = nil }, []int{allThere}},
		{"one is there twice", envelope.EffectOnce, func(e *evidence) { e.envelopes = append(e.envelopes, e.envelopes[0]) }, []int{allThere}},
		{"one was not submitted", envelope.EffectOnce, func(e *evidence) {
			e.envelopes = append(e.envelopes, found{External: "else", Status: "sent", Ends: 1})
		}, []int{allThere}},
		{"one has not ended", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Status, e.envelopes[0].Ends = "pending", 0 }, []int{allEnded}},
		{"one was skipped", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Status = "skipped" }, []int{allEnded}},
		{"one took effect twice", envelope.EffectOnce, func(e *evidence) { e.world.Effects[0] = 2 }, []int{nothingDoubled}},
		{"one is sent without effect", envelope.EffectOnce, func(e *evidence) { e.world.Effects[0] = 0 }, []int{sentIsDone}},
		{"one failed with effect", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0].Status, e.envelopes[0].Letter = "failed", "exhausted"
		}, []int{failedIsNot}},
		{"one failed without a dead letter", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0].Status, e.world.Effects[0] = "failed", 0
		}, []int{letters}},
		{"one is sent and a dead letter", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Letter = "unknown" }, []int{letters}},
		{"one had two keys", envelope.EffectOnce, func(e *evidence) { e.world.Mixed = []int{0} }, []int{oneKey}},
		{"one is unknown and was in hand", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = found{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, Letter: "unknown"}
		}, nil},
		{"the same of class keyed", envelope.EffectKeyed, func(e *evidence) {
			e.envelopes[0] = found{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, Letter: "unknown"}
		}, []int{allSent}},
		{"one is unknown and was not in hand", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = found{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, Letter: "unknown"}
			e.inHand = nil
		}, []int{unknownByKill}},
		{"one is unknown for another reason", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = found{External: "n-0", Action: id, Status: "unknown", Code: "timeout", Ends: 1, Letter: "unknown"}
		}, []int{unknownByKill}},
		{"one is unknown and nobody was killed", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = found{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, Letter: "unknown"}
			e.kills = 0
		}, []int{fewUnknown}},
		{"one ended twice", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Ends = 2 }, []int{ledgerOnce}},
		{"an attempt is written twice", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Repeats = 1 }, []int{ledgerOnce}},
		{"a worker crashes", envelope.EffectOnce, func(e *evidence) { e.crashes = 1 }, []int{noCrash}},
		{"a worker does not stop", envelope.EffectOnce, func(e *evidence) { e.late = 1 }, []int{stopsWhenAsked}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := good(row.class)
			row.change(&e)

			_, properties := e.judge()

			var got, want []string
			for _, p := range properties {
				if len(p.broken) > 0 {
					got = append(got, p.text)
				}
			}
			for _, i := range row.want {
				want = append(want, propertyText(i))
			}
			if strings.Join(got, "; ") != strings.Join(want, "; ") {
				t.Errorf("judge() finds broken: %q, want %q", got, want)
			}
		})
	}
}

// TestBlows follows the leases of a killed worker, and of one that lives on.
func TestBlows(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dead, alive := hold{Action: uuid.UUID{1}, Fence: 1}, hold{Action: uuid.UUID{2}, Fence: 1}
	b := &blows{lease: 4 * time.Second}
	b.add(blowKill, start)

	b.update(start.Add(-time.Second), map[hold]bool{dead: true}) // begun before the kill
	b.update(start.Add(1*time.Second), map[hold]bool{dead: true, alive: true})
	b.update(start.Add(2*time.Second), map[hold]bool{dead: true})
	b.update(start.Add(5*time.Second), map[hold]bool{{Action: uuid.UUID{1}, Fence: 2}: true})

	one := b.end()[0]
	if len(one.orphans) != 1 || one.orphans[0] != dead {
		t.Errorf("orphans = %v, want the killed worker's lease alone", one.orphans)
	}
	if got := one.recovery(); got != 5*time.Second {
		t.Errorf("recovery() = %s, want 5s", got)
	}
	restart := &blow{kind: blowRestart, at: start, took: time.Second}
	ends := []time.Time{start.Add(-time.Second), start.Add(2 * time.Second), start.Add(4 * time.Second)}
	if got := unexplained(ends, []*blow{restart}); got != 2 {
		t.Errorf("unexplained() = %d, want 2", got)
	}
	if held := inHand(b.end()); !held[dead.Action] || !held[alive.Action] || len(held) != 2 {
		t.Errorf("inHand() = %v, want both envelopes", held)
	}
}
