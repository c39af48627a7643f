package decide

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// Join returns the decision about a message of which two copies were decided
// differently: the more urgent bucket with its classification, the lower level,
// every veto, and only actions that both want. Except for the trace, it is
// commutative, associative and idempotent.
func Join(a, b Decision) Decision {
	if understanding(a, b) > 0 {
		a, b = b, a
	}
	out := a
	out.Asked, out.Allowed = min(a.Asked, b.Asked), min(a.Allowed, b.Allowed)
	out.Confidence = min(a.Confidence, b.Confidence)
	out.Question = a.Question || b.Question
	out.Vetoes = union(a.Vetoes, b.Vetoes, cmp.Compare[string])
	out.Lowered = union(a.Lowered, b.Lowered, func(x, y Lowering) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	out.Wants = bothWant(a, b)
	out.Trace = slices.DeleteFunc(slices.Clone(a.Trace), func(s Step) bool { return s.Rule == "copies" })
	out.Trace = append(out.Trace, Step{Rule: "copies", To: fmt.Sprintf("%s, %s", out.Bucket, out.Allowed), Because: "copies of the message " +
		"differ in header fields or authentication: the more urgent bucket and the lower level hold, and only what each of them allows is proposed"})
	return out
}

// bothWant returns the actions that two decisions want. Labels match only if
// the category is the same.
func bothWant(a, b Decision) (wants []Want) {
	for _, action := range actions() {
		x, y := a.Want(action.action), b.Want(action.action)
		if x == nil || y == nil || action.action == Label && a.Category != b.Category {
			continue
		}
		wants = append(wants, Want{Action: action.action, Confirm: x.Confirm || y.Confirm})
	}
	return wants
}

// understanding orders decisions by their classification, the most urgent
// first.
func understanding(a, b Decision) int {
	buckets := []Bucket{Urgent, Actionable, Informational, Archived}
	return cmp.Or(
		cmp.Compare(slices.Index(buckets, a.Bucket), slices.Index(buckets, b.Bucket)),
		cmp.Compare(slices.Index(urgency(), a.Priority), slices.Index(urgency(), b.Priority)),
		cmp.Compare(a.Act, b.Act), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Hint, b.Hint),
	)
}

// urgency returns the priorities, the most urgent first.
func urgency() []classify.Priority {
	return []classify.Priority{classify.Urgent, classify.NeedsResponse, classify.Personal, classify.ForInfo, classify.Promotional}
}

// union returns the distinct elements of two lists, sorted.
func union[T comparable](a, b []T, order func(T, T) int) []T {
	all := slices.Concat(a, b)
	slices.SortFunc(all, order)
	return slices.Compact(all)
}
