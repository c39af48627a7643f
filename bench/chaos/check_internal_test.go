package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// TestCheck breaks each property.
func TestCheck(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	good := func(class envelope.Effect) evidence {
		return evidence{
			fault: fault{
				codes: []string{workerLost, source.CodeTimeout}, most: perHit, wantSigns: []string{feltKills},
			},
			plan:       plan{classes: []envelope.Effect{class}, n: 1, concurrency: 1},
			injections: []*injection{{kind: byKill}},
			signs:      map[string]int{feltKills: 1},
			envelopes:  []storedAction{{External: "n-0", Action: id, Status: "sent", Ends: 1}},
			server:     &journalCounts{Effects: map[int]int{0: 1}},
			held:       map[uuid.UUID]bool{id: true},
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
			e.envelopes = append(e.envelopes, storedAction{External: "else", Status: "sent", Ends: 1})
		}, []int{allThere}},
		{"one has not ended", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Status, e.envelopes[0].Ends = "pending", 0 }, []int{allEnded}},
		{"one was skipped", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].Status = "skipped" }, []int{allEnded}},
		{"one took effect twice", envelope.EffectOnce, func(e *evidence) { e.server.Effects[0] = 2 }, []int{nothingDoubled}},
		{"one is sent without effect", envelope.EffectOnce, func(e *evidence) { e.server.Effects[0] = 0 }, []int{sentIsDone}},
		{"one failed with effect", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0].Status, e.envelopes[0].DeadLetter = "failed", "exhausted"
		}, []int{failedIsNot}},
		{"one failed without a dead letter", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0].Status, e.server.Effects[0] = "failed", 0
		}, []int{letters}},
		{"one is sent and a dead letter", envelope.EffectOnce, func(e *evidence) { e.envelopes[0].DeadLetter = "unknown" }, []int{letters}},
		{"one had two keys", envelope.EffectOnce, func(e *evidence) { e.server.Mixed = []int{0} }, []int{oneKey}},
		{"one is unknown and was in hand", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
		}, nil},
		{"the same of class keyed", envelope.EffectKeyed, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
		}, []int{allSent}},
		{"one is unknown and was not in hand", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
			e.held = nil
		}, []int{unknownByFault}},
		{"one is unknown for another reason", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: "lost", Ends: 1, DeadLetter: "unknown"}
		}, []int{unknownByFault}},
		{"one is unknown and its answer was spoiled", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
			e.server.Spoiled = map[int]int{0: 1}
		}, nil},
		{"one is unknown and its answer was not", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
		}, []int{unknownByFault}},
		{"one is unknown and the line was bad", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
			e.fault.line = placeTool
		}, nil},
		{"we had to step in", envelope.EffectOnce, func(e *evidence) { e.stuck = 1 }, []int{byItself}},
		{"the fault was not felt", envelope.EffectOnce, func(e *evidence) { e.signs = nil }, []int{wasFelt}},
		{"one is unknown and nobody was killed", envelope.EffectOnce, func(e *evidence) {
			e.envelopes[0] = storedAction{External: "n-0", Action: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
			e.injections = nil
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

			_, properties := e.check()

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

// TestCheckPerClass alternates the classes.
func TestCheckPerClass(t *testing.T) {
	t.Parallel()
	e := evidence{
		fault: fault{most: noneUnknown},
		plan:  plan{classes: []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed}, n: 2},
		envelopes: []storedAction{
			{External: "n-0", Status: "sent", Ends: 1}, {External: "n-1", Status: "sent", Ends: 1},
			{External: "n-2", Status: "sent", Ends: 1}, {External: "n-3", Status: "pending"},
		},
		server: &journalCounts{Effects: map[int]int{0: 1, 1: 1, 2: 2}},
	}

	totals, _ := e.check()

	want := []total{
		{class: envelope.EffectOnce, envelopes: 2, sent: 2, effects: 3, doubled: 1},
		{class: envelope.EffectKeyed, envelopes: 2, sent: 1, open: 1, effects: 1, lost: 1},
	}
	if diff := cmp.Diff(want, totals, cmp.AllowUnexported(total{})); diff != "" {
		t.Errorf("judge() (-want +got):\n%s", diff)
	}
}
