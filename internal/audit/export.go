package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Span is a range of time: from From until before Until. A zero bound is open.
type Span struct{ From, Until time.Time }

// Entry is an event as it is exported.
type Entry struct {
	Position Position
	// Checkpoint is the number of the checkpoint that covers it; zero for none yet.
	Checkpoint int64
	// Leaf is the hash that a checkpoint stores of it, of the row as it is now.
	Leaf  Hash
	At    time.Time
	Kind  Kind
	Actor string
	// Items is their text as PostgreSQL prints it, which Leaf covers.
	Items string
}

// Line returns an entry as one line of JSON. Its items are copied byte for byte,
// white space included, so that a reader of the line can compute the hash.
func (e Entry) Line() ([]byte, error) {
	head, err := json.Marshal(struct {
		Position   string    `json:"position"`
		Checkpoint *int64    `json:"checkpoint_no"`
		Leaf       Hash      `json:"leaf"`
		At         time.Time `json:"at"`
		Kind       Kind      `json:"kind"`
		Actor      string    `json:"actor"`
	}{e.Position.String(), numbered(e.Checkpoint), e.Leaf, e.At.UTC(), e.Kind, e.Actor})
	if err != nil {
		return nil, fmt.Errorf("write event %s: %w", e.Position, err)
	}
	return fmt.Appendf(head[:len(head)-1], `,"items":%s}`+"\n", e.Items), nil
}

func numbered(no int64) *int64 {
	if no == 0 {
		return nil
	}
	return &no
}

// Closing is the last line of an export.
type Closing struct {
	// End is true, which distinguishes this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events is the number of lines before this one.
	Events int64 `json:"events"`
	// Next is the position to continue after; empty at the end.
	Next string `json:"next_cursor,omitzero"`
	// Head is the head of the chain at this moment; nil for none.
	Head *Head `json:"head"`
}
