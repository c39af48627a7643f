package decide_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// TestJoinOfCopies joins decisions about random facts in any order and any
// number of times.
func TestJoinOfCopies(t *testing.T) {
	t.Parallel()

	same := []cmp.Option{cmpopts.IgnoreFields(decide.Decision{}, "Trace"), cmpopts.EquateEmpty()}
	buckets := []decide.Bucket{decide.Urgent, decide.Actionable, decide.Informational, decide.Archived}
	rapid.Check(t, func(t *rapid.T) {
		var copies []decide.Decision
		for range rapid.IntRange(1, 4).Draw(t, "copies") {
			copies = append(copies, decide.Decide(drawFacts(t)))
		}
		all := func(of []decide.Decision) decide.Decision {
			joined := of[0]
			for _, d := range of {
				joined = decide.Join(joined, d)
			}
			return joined
		}
		joined := all(copies)
		if diff := cmp.Diff(joined, all(rapid.Permutation(copies).Draw(t, "order")), same...); diff != "" {
			t.Fatalf("the order of copies changes the decision:\n%s", diff)
		}
		at := rapid.IntRange(0, len(copies)-1).Draw(t, "again")
		if diff := cmp.Diff(joined, decide.Join(joined, copies[at]), same...); diff != "" {
			t.Fatalf("a copy that was joined before changes the decision:\n%s", diff)
		}
		halves := decide.Join(all(copies[at:]), all(copies[:at+1]))
		if diff := cmp.Diff(joined, halves, same...); diff != "" {
			t.Fatalf("joined in halves the decision is another one:\n%s", diff)
		}
		for _, d := range copies {
			if slices.Index(buckets, joined.Bucket) > slices.Index(buckets, d.Bucket) || joined.Allowed > d.Allowed {
				t.Fatalf("joined %s at %s, and a copy has %s at %s", joined.Bucket, joined.Allowed, d.Bucket, d.Allowed)
			}
			for _, action := range allActions() {
				if effort(joined, action) > effort(d, action) {
					t.Fatalf("joined, %s is wanted more than for a copy", action)
				}
			}
		}
	})
}
