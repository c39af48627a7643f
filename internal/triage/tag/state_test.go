package tag_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// TestEveryPair walks every pair of a state and an event.
func TestEveryPair(t *testing.T) {
	t.Parallel()
	const impossible = tag.State("")
	want := map[tag.State]map[tag.Event]tag.State{
		tag.Due: {
			tag.Tagged: tag.Due, tag.Untagged: tag.Gone, tag.Tried: tag.Open, tag.Succeeded: impossible,
			tag.Failed: tag.Due, tag.Stopped: impossible, tag.Retried: tag.Due,
		},
		tag.Open: {
			tag.Tagged: tag.Open, tag.Untagged: tag.Leaving, tag.Tried: impossible, tag.Succeeded: tag.Gone,
			tag.Failed: tag.Due, tag.Stopped: tag.Skipped, tag.Retried: impossible,
		},
		tag.Skipped: {
			tag.Tagged: tag.Skipped, tag.Untagged: tag.Gone, tag.Tried: impossible, tag.Succeeded: impossible,
			tag.Failed: impossible, tag.Stopped: impossible, tag.Retried: tag.Due,
		},
		tag.Leaving: {
			tag.Tagged: tag.Open, tag.Untagged: tag.Leaving, tag.Tried: impossible, tag.Succeeded: tag.Gone,
			tag.Failed: tag.Gone, tag.Stopped: tag.Gone, tag.Retried: impossible,
		},
		tag.Gone: {
			tag.Tagged: tag.Due, tag.Untagged: tag.Gone, tag.Tried: impossible, tag.Succeeded: impossible,
			tag.Failed: impossible, tag.Stopped: impossible, tag.Retried: tag.Due,
		},
	}
	for _, state := range tag.States() {
		for _, event := range tag.Events() {
			expected, listed := want[state][event]
			if !listed {
				t.Fatalf("the table has no row for %s in %s", event, state)
			}
			for failures := range tag.MaxFailures {
				got, ok := tag.Tag{State: state, Try: 4, Failures: failures}.Next(event)

				state := expected
				if event == tag.Failed && expected == tag.Due && failures == tag.MaxFailures-1 {
					state = tag.Skipped
				}
				if ok != (expected != impossible) || ok && got.State != state {
					t.Errorf("%s, with %d failures, after %s = %s, %t; want %s", tag.Tag{State: state}.State, failures, event, got.State, ok, state)
				}
			}
		}
	}
}

// TestRandomWalk checks what holds in every history: the number of a try is never
// used again after its end, at most MaxFailures tries end in failure one after
// another, and only a person makes a skipped tag due.
func TestRandomWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now, tried, failed := tag.New(), make(map[int]bool), 0
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			event := rapid.SampledFrom(tag.Events()).Draw(t, "event")
			next, ok := now.Next(event)
			if !ok {
				continue
			}
			switch event {
			case tag.Tried:
				if tried[now.Try] {
					t.Fatalf("the try %d begins twice", now.Try)
				}
				tried[now.Try] = true
			case tag.Failed:
				if failed++; failed > tag.MaxFailures {
					t.Fatalf("%d tries failed one after another", failed)
				}
				if next.Try == now.Try {
					t.Fatalf("the try %d ends and is the next one", now.Try)
				}
			case tag.Succeeded, tag.Stopped:
				if next.Try == now.Try {
					t.Fatalf("the try %d ends and is the next one", now.Try)
				}
			case tag.Tagged, tag.Untagged, tag.Retried:
			}
			if next.Failures == 0 {
				failed = 0
			}
			if now.State == tag.Skipped && next.State == tag.Due && event != tag.Retried {
				t.Fatalf("a skipped tag is due after %s", event)
			}
			if next.State == tag.Open && now.State == tag.Leaving && next.Try != now.Try {
				t.Fatal("a tag that was set again has another try while one is open")
			}
			now = next
		}
	})
}
