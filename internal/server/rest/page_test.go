package rest_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest"
)

func contains(text []byte, part string) bool { return bytes.Contains(text, []byte(part)) }

func TestPagesCoverAllOnceWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	f := newHouse(t).tenant("pages")
	before := make(map[string]bool)
	for range 23 {
		before[f.agent.propose("read")] = true
	}
	stop := make(chan struct{})
	var adding sync.WaitGroup
	adding.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.agent.trySend(t.Context(), "POST", "/api/v1/actions", proposal("read", object{})); err != nil {
				t.Error(err)
				return
			}
		}
	})

	seen := make(map[string]int)
	for cursor := ""; ; {
		var page struct {
			Items      []shown
			NextCursor *string `json:"next_cursor"`
		}
		f.operator.send("GET", "/api/v1/actions?limit=3"+cursor, nil).wants(t, 200).into(t, &page)
		for _, it := range page.Items {
			seen[it.Envelope.ActionID]++
		}
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	close(stop)
	adding.Wait()

	for id := range before {
		if seen[id] == 0 {
			t.Errorf("%s is on no page", id)
		}
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("%s is on %d pages", id, n)
		}
	}
}

func TestCursorRoundTrip(t *testing.T) {
	t.Parallel()
	lists := rest.Cursors()

	rapid.Check(t, func(t *rapid.T) {
		id := envelope.ActionID(rapid.Make[[16]byte]().Filter(func(b [16]byte) bool { return uuid.UUID(b) != uuid.Nil }).Draw(t, "id"))
		of := rapid.SampledFrom(lists[:]).Draw(t, "list")
		text := rest.WriteCursor(of, id)
		if got, err := rest.ParseCursor(of, text); err != nil || got != id {
			t.Fatalf("ParseCursor(WriteCursor(%s)) = %s, %v", id, got, err)
		}
		for _, other := range lists {
			if _, err := rest.ParseCursor(other, text); (err == nil) != (other == of) {
				t.Fatalf("a cursor of %s is read by %s: %v", of, other, err)
			}
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	of := rest.Cursors()[0]
	f.Add(rest.WriteCursor(of, envelope.NewActionID()))
	f.Add("MTphY3Rpb25zOg")
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := rest.ParseCursor(of, text); err == nil && text != "" && rest.WriteCursor(of, id) != text {
			t.Errorf("ParseCursor(%q) = %s, which is written otherwise", text, id)
		}
	})
}

func FuzzParseEventID(f *testing.F) {
	for _, seed := range []string{"812-4711-0", "0-0-0", "18446744073709551615-9223372036854775807-999999999", "1--1-0", "1-1", "a-b-c", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written, err := rest.ParseEventID(text)
		if err != nil {
			return
		}
		if again, err := rest.ParseEventID(written); err != nil || again != written {
			t.Errorf("ParseEventID(%q) = %q, %v", written, again, fmt.Sprint(err))
		}
	})
}
