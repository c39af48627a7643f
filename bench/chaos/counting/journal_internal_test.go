package counting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJournal reads a journal again, as a restarted server does.
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
		{What: faulty, N: 1, Fault: Down},
		{What: faulty, N: 2, Fault: Busy},
		{What: rejected, N: 3},
	} {
		if err := j.record(e); err != nil {
			t.Fatal(err)
		}
	}

	got, err := ReadJournal(path)

	want := &Counts{
		Arrived: map[int]int{1: 2}, Effects: map[int]int{1: 1}, Mixed: []int{1}, Faulty: map[int]int{1: 1}, Rejected: 1, Busy: 1,
		keys: map[int]string{1: "b"}, done: map[string]bool{"a": true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Counts{})); err != nil || diff != "" {
		t.Errorf("ReadJournal() (-want +got), %v:\n%s", err, diff)
	}
	for _, text := range []string{"{", `{"what":"slept"}` + "\n", `{"what":"effect","n":"one"}` + "\n"} {
		if err := newCounts().read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("read(%q) = %v, want an error that names the line", text, err)
		}
	}
}
