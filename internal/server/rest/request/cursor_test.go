package request_test

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

func TestCursorRoundTrip(t *testing.T) {
	t.Parallel()
	lists := []string{"actions", "dead-letters"}

	rapid.Check(t, func(t *rapid.T) {
		id := envelope.ActionID(rapid.Make[[16]byte]().Filter(func(b [16]byte) bool { return uuid.UUID(b) != uuid.Nil }).Draw(t, "id"))
		of := rapid.SampledFrom(lists).Draw(t, "list")
		text := request.WriteCursor(of, id)
		if got, err := request.ParseCursor(of, text); err != nil || got != id {
			t.Fatalf("ParseCursor(WriteCursor(%s)) = %s, %v", id, got, err)
		}
		for _, other := range lists {
			if _, err := request.ParseCursor(other, text); (err == nil) != (other == of) {
				t.Fatalf("a cursor of %s is read by %s: %v", of, other, err)
			}
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	const of = "actions"
	f.Add(request.WriteCursor(of, envelope.NewActionID()))
	f.Add("MTphY3Rpb25zOg")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := request.ParseCursor(of, text); err == nil && text != "" && request.WriteCursor(of, id) != text {
			t.Errorf("ParseCursor(%q) = %s, which is written otherwise", text, id)
		}
	})
}
