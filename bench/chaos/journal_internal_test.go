package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJournal reads back what was written, as a server does that died.
func TestJournal(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/journal"
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []event{
		{What: arrived, N: 1, Key: "a"},
		{What: effect, N: 1, Key: "a"},
		{What: arrived, N: 1, Key: "b"},
		{What: spoiled, N: 1, Fault: down503},
		{What: spoiled, N: 2, Fault: busy},
		{What: turnedAway, N: 3},
	} {
		if err := j.write(e); err != nil {
			t.Fatal(err)
		}
	}

	got, err := readJournal(path)

	want := &journalCounts{
		Arrived: map[int]int{1: 2}, Effects: map[int]int{1: 1}, Mixed: []int{1}, Spoiled: map[int]int{1: 1}, TurnedAway: 1, Told: 1,
		keys: map[int]string{1: "b"}, done: map[string]bool{"a": true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(journalCounts{})); err != nil || diff != "" {
		t.Errorf("readJournal() (-want +got), %v:\n%s", err, diff)
	}
	for _, text := range []string{"{", `{"what":"slept"}` + "\n", `{"what":"effect","n":"one"}` + "\n"} {
		if err := newJournalCounts().read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("read(%q) = %v, want an error that names the line", text, err)
		}
	}
}
