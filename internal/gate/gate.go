// Package gate owns the checks that stand between an envelope that may run
// and its call. They are pure: what the world looks like comes in as Facts,
// and the answer says what to do and why. It refuses to read a clock or a
// table.
package gate

// Verdict is what a gate says.
type Verdict string

// The verdicts.
const (
	// Pass: nothing speaks against the call.
	Pass Verdict = "pass"
	// Skip: the call must not be made, now or later.
	Skip Verdict = "skip"
)

// The codes of verdicts that are not Pass.
const (
	// CodeDeadline: must_run_before has passed.
	CodeDeadline = "deadline"
)

// Facts is what the gates look at.
type Facts struct {
	// PastDeadline says that must_run_before has passed, by the database's
	// clock.
	PastDeadline bool
}

// Answer is a verdict with its reason.
type Answer struct {
	Verdict Verdict
	// Code is a short stable word, Message a line for people; both empty for
	// Pass.
	Code, Message string
}

// Check asks every gate in order and returns the first answer that is not
// Pass.
func Check(f Facts) Answer {
	for _, g := range []func(Facts) Answer{deadline} {
		if a := g(f); a.Verdict != Pass {
			return a
		}
	}
	return Answer{Verdict: Pass}
}

func deadline(f Facts) Answer {
	if f.PastDeadline {
		return Answer{Skip, CodeDeadline, "must_run_before passed while it waited"}
	}
	return Answer{Verdict: Pass}
}
