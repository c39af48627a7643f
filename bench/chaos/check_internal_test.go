package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// TestCheck violates each property.
func TestCheck(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	good := func(class envelope.Effect) evidence {
		return evidence{
			fault: fault{
				codes: []string{workerLost, source.CodeTimeout}, most: perInjection, signs: []string{signKills},
			},
			plan:       plan{classes: []envelope.Effect{class}, n: 1, concurrency: 1},
			injections: []*injection{{kind: byKill, held: map[uuid.UUID]bool{id: true}}},
			signs:      map[string]int{signKills: 1},
			actions:    []database.Action{{ExternalID: "n-0", ID: id, Status: "sent", Ends: 1}},
			server:     &counting.Counts{Effects: map[int]int{0: 1}},
		}
	}
	for _, row := range []struct {
		name   string
		class  envelope.Effect
		change func(*evidence)
		want   []property
	}{
		{"nothing", envelope.EffectOnce, func(*evidence) {}, nil},
		{"an envelope is not there", envelope.EffectOnce, func(e *evidence) { e.actions = nil }, []property{allStored}},
		{"one is there twice", envelope.EffectOnce, func(e *evidence) { e.actions = append(e.actions, e.actions[0]) }, []property{allStored}},
		{"one was not submitted", envelope.EffectOnce, func(e *evidence) {
			e.actions = append(e.actions, database.Action{ExternalID: "else", Status: "sent", Ends: 1})
		}, []property{allStored}},
		{"one has not ended", envelope.EffectOnce, func(e *evidence) { e.actions[0].Status, e.actions[0].Ends = "pending", 0 }, []property{allEnded}},
		{"one was skipped", envelope.EffectOnce, func(e *evidence) { e.actions[0].Status = "skipped" }, []property{allEnded}},
		{"one took effect twice", envelope.EffectOnce, func(e *evidence) { e.server.Effects[0] = 2 }, []property{nothingDoubled}},
		{"one is sent without effect", envelope.EffectOnce, func(e *evidence) { e.server.Effects[0] = 0 }, []property{sentTookEffect}},
		{"one failed with effect", envelope.EffectOnce, func(e *evidence) {
			e.actions[0].Status, e.actions[0].DeadLetter = "failed", "exhausted"
		}, []property{failedTookNone}},
		{"one failed without a dead letter", envelope.EffectOnce, func(e *evidence) {
			e.actions[0].Status, e.server.Effects[0] = "failed", 0
		}, []property{deadLetters}},
		{"one is sent and a dead letter", envelope.EffectOnce, func(e *evidence) { e.actions[0].DeadLetter = "unknown" }, []property{deadLetters}},
		{"a claim counts an action that ended", envelope.EffectOnce, func(e *evidence) { e.uneven = []string{"one"} }, []property{placesFree}},
		{"one had two keys", envelope.EffectOnce, func(e *evidence) { e.server.Mixed = []int{0} }, []property{oneKey}},
		{"one is unknown and was in flight", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
		}, nil},
		{"the same of class keyed", envelope.EffectKeyed, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
		}, []property{allSent}},
		{"one is unknown and was not in flight", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
			e.injections[0].held = nil
		}, []property{unknownByFault}},
		{"one is unknown for another reason", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: "lost", Ends: 1, DeadLetter: "unknown"}
		}, []property{unknownByFault}},
		{"one is unknown and its answer was faulty", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
			e.server.Faulty = map[int]int{0: 1}
		}, nil},
		{"one is unknown and its answer was not", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
		}, []property{unknownByFault}},
		{"one is unknown and the network was disturbed", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: "timeout", Ends: 1, DeadLetter: "unknown"}
			e.fault.proxy = beforeTool
		}, nil},
		{"a worker had to be killed", envelope.EffectOnce, func(e *evidence) { e.signs[signStuck] = 1 }, []property{recoversAlone}},
		{"the fault had no sign", envelope.EffectOnce, func(e *evidence) { e.signs = nil }, []property{hadEffect}},
		{"one is unknown and nobody was killed", envelope.EffectOnce, func(e *evidence) {
			e.actions[0] = database.Action{ExternalID: "n-0", ID: id, Status: "unknown", Code: workerLost, Ends: 1, DeadLetter: "unknown"}
			e.plan.concurrency = 0
		}, []property{unknownBounded}},
		{"one ended twice", envelope.EffectOnce, func(e *evidence) { e.actions[0].Ends = 2 }, []property{attemptsOnce}},
		{"an attempt is written twice", envelope.EffectOnce, func(e *evidence) { e.actions[0].Repeats = 1 }, []property{attemptsOnce}},
		{"a worker crashes", envelope.EffectOnce, func(e *evidence) { e.crashes = 1 }, []property{noCrash}},
		{"a worker does not stop", envelope.EffectOnce, func(e *evidence) { e.late = 1 }, []property{stopsOnSignal}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := good(row.class)
			row.change(&e)

			_, found := e.check()

			var got []property
			for _, p := range allProperties() {
				if len(found[p]) > 0 {
					got = append(got, p)
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("check() violations (-want +got):\n%s", diff)
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
		actions: []database.Action{
			{ExternalID: "n-0", Status: "sent", Ends: 1}, {ExternalID: "n-1", Status: "sent", Ends: 1},
			{ExternalID: "n-2", Status: "sent", Ends: 1}, {ExternalID: "n-3", Status: "pending"},
		},
		server: &counting.Counts{Effects: map[int]int{0: 1, 1: 1, 2: 2}},
	}

	totals, _ := e.check()

	want := []total{
		{Class: envelope.EffectOnce, Envelopes: 2, Sent: 2, Effects: 3, Doubled: 1},
		{Class: envelope.EffectKeyed, Envelopes: 2, Sent: 1, Open: 1, Effects: 1, Lost: 1},
	}
	if diff := cmp.Diff(want, totals); diff != "" {
		t.Errorf("check() (-want +got):\n%s", diff)
	}
}
