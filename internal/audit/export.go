package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Span is a range of time: from From on, and before Until. A zero end is open.
type Span struct{ From, Until time.Time }

// Entry is an event as it is exported.
type Entry struct {
	Position Position
	// Seal is the number of the checkpoint that covers it; zero for none yet.
	Checkpoint int64
	// Leaf is the hash that a checkpoint keeps of it, taken of the row as it is now.
	Leaf  Hash
	At    time.Time
	Kind  Kind
	Actor string
	// Items is the text that PostgreSQL makes of them, which Leaf covers.
	Items string
}

// Line writes an entry as one line of JSON. The items stand in it byte for
// byte, white space included, so that whoever has the line can take the hash.
func (e Entry) Line() ([]byte, error) {
	head, err := json.Marshal(struct {
		Place      string    `json:"position"`
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
	// End is true, and tells this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events is how many lines come before.
	Events int64 `json:"events"`
	// Next is the place to go on behind; empty when this was all.
	Next string `json:"next_cursor,omitzero"`
	// Head is the head of the chain at this moment; nil for none.
	Head *Head `json:"head"`
}
