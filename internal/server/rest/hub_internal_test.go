package rest

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
)

func feedOf(followers ...*follower) *feed {
	f := &feed{streams: make(map[*follower]struct{}), watches: make(map[envelope.ActionID]map[*watch]struct{})}
	for _, sub := range followers {
		sub.of, sub.batches = f, make(chan batch, backlog)
		f.streams[sub] = struct{}{}
	}
	return f
}

func batchAt(event int64) batch {
	return batch{events: []audit.Stored{{Place: audit.Place{Tx: 1, Event: event}}}}
}

func TestSlowFollowerIsCutOffAndOthersAreNot(t *testing.T) {
	t.Parallel()
	slow, quick := &follower{}, &follower{}
	h, f := &hub{}, feedOf(slow, quick)

	for n := range int64(backlog + 1) {
		if !h.handOut(f, batchAt(n)) {
			t.Fatal("a batch was held back")
		}
		<-quick.batches
	}

	got := 0
	for range slow.batches { // ends, since it was closed
		got++
	}
	if got != backlog || !slow.cut || quick.cut {
		t.Errorf("slow got %d batches (cut %t), quick is cut %t; want %d, true, false", got, slow.cut, quick.cut, backlog)
	}
}

func TestBatchWaitsForWhatActionsAreWhileAnAgentFollows(t *testing.T) {
	t.Parallel()
	agent := &follower{choosy: true}
	h, f := &hub{}, feedOf(agent)
	b := batchAt(7)

	if h.handOut(f, b) || len(agent.batches) != 0 || f.at != (audit.Place{}) {
		t.Fatal("a batch without what its actions are was handed to an agent")
	}
	b.about = map[envelope.ActionID]about{}
	if !h.handOut(f, b) || len(agent.batches) != 1 || f.at != b.events[0].Place {
		t.Error("a batch with it was not handed out")
	}
}
