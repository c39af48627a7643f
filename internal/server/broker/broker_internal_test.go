package broker

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
)

func topicOf(subscribers ...*Subscriber) *topic {
	t := &topic{subscribers: make(map[*Subscriber]struct{}), waits: make(map[envelope.ActionID]map[chan struct{}]struct{})}
	for _, sub := range subscribers {
		sub.topic, sub.batches = t, make(chan Batch, backlog)
		t.subscribers[sub] = struct{}{}
	}
	return t
}

func batchAt(event int64) Batch {
	return Batch{Events: []audit.Stored{{Position: audit.Position{Tx: 1, Event: event}}}, Subjects: map[envelope.ActionID]access.Subject{}}
}

func TestSlowSubscriberIsEndedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	slow, quick := &Subscriber{}, &Subscriber{}
	b, topic := &Broker{}, topicOf(slow, quick)

	for n := range int64(backlog + 1) {
		if !b.handOut(topic, batchAt(n)) {
			t.Fatal("a batch was held back")
		}
		<-quick.batches
	}

	got := 0
	for range slow.Batches() { // ends, since it was closed
		got++
	}
	if got != backlog || !slow.ended || quick.ended {
		t.Errorf("slow got %d batches (ended %t), quick ended %t; want %d, true, false", got, slow.ended, quick.ended, backlog)
	}
}

func TestBatchIsHeldUntilItsSubjectsAreKnown(t *testing.T) {
	t.Parallel()
	agent := &Subscriber{}
	b, topic := &Broker{}, topicOf(agent)
	batch := batchAt(7)
	batch.Subjects = nil

	if b.handOut(topic, batch) || len(agent.batches) != 0 || topic.at != (audit.Position{}) {
		t.Fatal("a batch without subjects was handed to a subscriber")
	}
	batch.Subjects = map[envelope.ActionID]access.Subject{}
	if !b.handOut(topic, batch) || len(agent.batches) != 1 || topic.at != batch.Events[0].Position {
		t.Error("a batch with subjects was not handed out")
	}
}

// TestProposalNotifiesNoWait holds that a wait is not notified of the proposal that was
// before it, but of what follows.
func TestProposalNotifiesNoWait(t *testing.T) {
	t.Parallel()
	b, topic, id, wait := &Broker{}, topicOf(), envelope.NewActionID(), make(chan struct{}, 1)
	topic.waits[id] = map[chan struct{}]struct{}{wait: {}}
	event := func(kind audit.Kind) Batch {
		return Batch{Events: []audit.Stored{{Event: audit.Event{Kind: kind, Items: []audit.Item{{Action: id}}}}}}
	}

	if b.handOut(topic, event(audit.Proposed)); len(wait) != 0 {
		t.Error("the proposal notified a wait")
	}
	if b.handOut(topic, event(audit.Voted)); len(wait) != 1 {
		t.Error("a vote did not notify a wait")
	}
}

// TestStatusesAreReadSeldomForManyWaits has few and many actions awaited.
func TestStatusesAreReadSeldomForManyWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		waits int
		since time.Duration // the last read
		took  time.Duration // it
		woken bool
		want  bool
	}{
		"none":                            {0, time.Hour, 0, true, false},
		"few, notified":                   {sweptOnWake, 0, time.Second, true, true},
		"few, a moment ago":               {sweptOnWake, sweepEvery / 2, 0, false, false},
		"few, a while ago":                {sweptOnWake, sweepEvery, 0, false, true},
		"many, notified":                  {sweptOnWake + 1, sweepEvery / 2, 0, true, false},
		"many, after a read that is long": {sweptOnWake + 1, 5 * time.Second, 30 * time.Millisecond, true, false},
		"many, long after it":             {sweptOnWake + 1, 6 * time.Second, 30 * time.Millisecond, false, true},
	} {
		topic := topicOf()
		topic.swept, topic.sweepTook = now.Add(-test.since), test.took
		for range test.waits {
			topic.waits[envelope.NewActionID()] = nil
		}
		topic.changed = test.woken
		if got := topic.sweepDue(now); got != test.want {
			t.Errorf("%s: sweepDue = %t", name, got)
		}
	}
}

// TestNamedEndsAreNotRead has a notice name the one of two awaited actions that has
// ended: its waits are notified, and no status is read. Another change is read.
func TestNamedEndsAreNotRead(t *testing.T) {
	t.Parallel()
	tenant, ended, other := envelope.TenantID{1}, envelope.ActionID{15: 1}, envelope.ActionID{15: 2}
	of := topicOf()
	of.woken = make(chan struct{}, 1)
	b := &Broker{topics: map[envelope.TenantID]*topic{tenant: of}}
	waits := make(map[envelope.ActionID]chan struct{})
	for _, action := range []envelope.ActionID{ended, other} {
		waits[action] = make(chan struct{}, 1)
		of.waits[action] = map[chan struct{}]struct{}{waits[action]: {}}
	}
	notice := postgres.Notice{Tenant: tenant.String(), Changed: true, Ended: []postgres.Tail{postgres.TailOf(ended)}}

	b.wake(notice.String())

	if len(waits[ended]) != 1 || len(waits[other]) != 0 || of.changed || len(of.woken) != 0 {
		t.Errorf("after a named end: %d, %d notified, statuses to be read %t, topic woken %d; want 1, 0, false, 0",
			len(waits[ended]), len(waits[other]), of.changed, len(of.woken))
	}
	notice.Ended = nil
	b.wake(notice.String())
	if len(waits[other]) != 0 || !of.changed || len(of.woken) != 1 {
		t.Errorf("after another change: %d notified, statuses to be read %t, topic woken %d; want 0, true, 1", len(waits[other]), of.changed, len(of.woken))
	}
}
