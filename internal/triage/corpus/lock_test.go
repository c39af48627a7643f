package corpus_test

import (
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// TestLockedIsTheSameThird pins the rule: with another one, examples that were
// used for tuning would be counted as unseen.
func TestLockedIsTheSameThird(t *testing.T) {
	t.Parallel()
	got := ""
	for _, set := range []string{corpus.NameMessages, corpus.NameFixture} {
		for i := range 30 {
			if corpus.Locked(set, fmt.Sprint(i)) {
				got += fmt.Sprintf("%s %d,", set, i)
			}
		}
	}
	if got != pinned {
		t.Errorf("locked are %q, want %q", got, pinned)
	}

	for _, set := range corpus.Measured() {
		n := 0
		for i := range 3000 {
			if corpus.Locked(set, fmt.Sprintf("m%d", i)) {
				n++
			}
		}
		if n < 900 || n > 1100 {
			t.Errorf("%d of 3000 ids of %s are locked, want a third", n, set)
		}
	}
}

const pinned = "mail-labelled/messages 4,mail-labelled/messages 6,mail-labelled/messages 8,mail-labelled/messages 11," +
	"mail-labelled/messages 13,mail-labelled/messages 20,mail-labelled/messages 26,mail-labelled/messages 27," +
	"fixture 0,fixture 2,fixture 13,fixture 17,fixture 18,fixture 20,fixture 21,fixture 25,"

func TestPartsOfASource(t *testing.T) {
	t.Parallel()
	s := corpus.Source{Name: corpus.NameMessages}
	for i := range 60 {
		s.Examples = append(s.Examples, corpus.Example{ID: fmt.Sprint(i)})
	}

	open, closed := s.Open(), s.LockedPart()

	if len(open.Examples)+len(closed.Examples) != 60 || len(closed.Examples) == 0 || len(open.Examples) == 0 {
		t.Fatalf("%d open and %d locked examples, want 60 in all", len(open.Examples), len(closed.Examples))
	}
	for _, e := range open.Examples {
		if corpus.Locked(s.Name, e.ID) {
			t.Errorf("%s is locked and in the open part", e.ID)
		}
	}
	s.Name = corpus.NameTraining
	if n := len(s.Open().Examples); n != 60 {
		t.Errorf("the open part of training mail has %d examples, want all 60", n)
	}
}
