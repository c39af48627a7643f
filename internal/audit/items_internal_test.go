package audit

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
)

func TestItemsAreEncodedAsByJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Item {
			it := Item{
				Status:   rapid.SampledFrom([]envelope.Status{"", envelope.StatusPending, envelope.StatusSent, `a"<`}).Draw(t, "status"),
				Approval: rapid.SampledFrom([]envelope.Approval{"", envelope.ApprovalAuto, "<"}).Draw(t, "approval"),
				Attempt:  rapid.IntRange(0, 12).Draw(t, "attempt"),
				Code:     rapid.SampledFrom([]string{"", "timeout"}).Draw(t, "code"),
				Note:     rapid.SampledFrom([]string{"", "ä\n"}).Draw(t, "note"),
			}
			if rapid.Bool().Draw(t, "action") {
				it.Action = envelope.ActionID(uuid.New())
			}
			return it
		})).Draw(t, "items")
		if items == nil {
			items = []Item{}
		}
		want, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}

		got, err := encodeItems(items)

		if err != nil || string(got) != string(want) {
			t.Fatalf("encodeItems = %s, %v, want %s", got, err, want)
		}
	})
}
