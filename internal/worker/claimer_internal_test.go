package worker

import (
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// TestMarksOfACommitWithoutAnAnswerAreTakenBack holds that calls which a claim marked
// and did not send go back to the outbox when its commit may have happened, and keep
// their slots until then.
func TestMarksOfACommitWithoutAnAnswerAreTakenBack(t *testing.T) {
	t.Parallel()
	once := &outbox.Item{Lease: outbox.Lease{Action: envelope.ActionID(uuid.UUID{1}), Fence: 7}, Effect: envelope.EffectOnce}
	read := &outbox.Item{Lease: outbox.Lease{Action: envelope.ActionID(uuid.UUID{2}), Fence: 8}, Effect: envelope.EffectRead}
	batch := claimedBatch{checked: checkedItems{run: []*outbox.Item{once, read}}}
	for _, sent := range []bool{true, false} {
		c := claimer{Pipeline: &Pipeline{semaphore: newSemaphore(5), settle: make(chan settlement, 5)}}
		slots := c.semaphore.acquireNow(5)

		c.abandon(batch, slots, sent)

		close(c.settle)
		var back []outbox.Lease
		for s := range c.settle {
			back = append(back, s.Lease)
		}
		want := 0
		if sent {
			want = 1
		}
		if len(back) != want || want == 1 && back[0] != once.Lease {
			t.Errorf("commit sent %t: %v go back, want %d", sent, back, want)
		}
		if free := c.semaphore.acquireNow(5); free != 5-want {
			t.Errorf("commit sent %t: %d slots are free, want %d", sent, free, 5-want)
		}
	}
}
