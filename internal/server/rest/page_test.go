package rest_test

import (
	"bytes"
	"sync"
	"testing"
)

func contains(text []byte, part string) bool { return bytes.Contains(text, []byte(part)) }

func TestPagesCoverAllOnceWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("pages")
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
