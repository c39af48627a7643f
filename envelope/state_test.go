package envelope_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	pending  = envelope.StatusPending
	sending  = envelope.StatusSending
	sent     = envelope.StatusSent
	conflict = envelope.StatusConflict
	failed   = envelope.StatusFailed
	skipped  = envelope.StatusSkipped
	unknown  = envelope.StatusUnknown
)

func statuses() []envelope.Status {
	return []envelope.Status{pending, sending, sent, conflict, failed, skipped, unknown}
}

// legal repeats the table on purpose: a change there must be made twice.
func legal() map[envelope.Status]map[envelope.Event]envelope.Status {
	return map[envelope.Status]map[envelope.Event]envelope.Status{
		pending: {
			envelope.EventClaim: pending, envelope.EventRelease: pending, envelope.EventDefer: pending,
			envelope.EventRetry: pending, envelope.EventStart: sending, envelope.EventSucceed: sent,
			envelope.EventConflict: conflict, envelope.EventFail: failed, envelope.EventSkip: skipped,
			envelope.EventUndo: skipped, envelope.EventLose: unknown,
		},
		sending: {
			envelope.EventClaim: sending, envelope.EventRelease: pending,
			envelope.EventSucceed: sent, envelope.EventConflict: conflict, envelope.EventFail: failed,
			envelope.EventSkip: skipped, envelope.EventRetry: pending, envelope.EventDefer: pending,
			envelope.EventLose: unknown,
		},
		unknown: {
			envelope.EventResolveSent: sent, envelope.EventResolvePending: pending,
			envelope.EventResolveFailed: failed, envelope.EventReplay: pending,
		},
		failed: {envelope.EventReplay: pending},
	}
}

func TestNextWalksEveryPair(t *testing.T) {
	t.Parallel()

	for _, from := range append(statuses(), "no such status") {
		for _, ev := range append(envelope.Events(), "no such event") {
			want, ok := legal()[from][ev]
			got, err := envelope.Next(from, ev)
			switch {
			case ok && (err != nil || got != want):
				t.Errorf("Next(%q, %q) = %q, %v, want %q", from, ev, got, err, want)
			case !ok && !errors.Is(err, fault.Conflict):
				t.Errorf("Next(%q, %q) = %q, %v, want fault.Conflict", from, ev, got, err)
			case !ok && got != from:
				t.Errorf("Next(%q, %q) = %q, want to stay", from, ev, got)
			}
		}
	}
}

func TestNextOnRandomWalks(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		status := pending
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			ev := rapid.SampledFrom(envelope.Events()).Draw(t, "event")
			next, err := envelope.Next(status, ev)
			if err != nil {
				continue
			}
			byPerson := slices.Contains([]envelope.Event{
				envelope.EventReplay, envelope.EventResolveSent,
				envelope.EventResolvePending, envelope.EventResolveFailed,
			}, ev)
			switch {
			case !next.Valid():
				t.Fatalf("%q after %q leads to %q, want a valid status", ev, status, next)
			case status == sent || status == conflict || status == skipped:
				t.Fatalf("%q leads from %q to %q, want no way out", ev, status, next)
			case (envelope.Terminal(status) || status == unknown) && !byPerson:
				t.Fatalf("%q leads from %q to %q by itself", ev, status, next)
			case byPerson && !envelope.Terminal(status) && status != unknown:
				t.Fatalf("%q interrupts %q", ev, status)
			case next == unknown && ev != envelope.EventLose:
				t.Fatalf("%q leads from %q to unknown, want only lost calls to be unknown", ev, status)
			}
			status = next
		}
	})
}

func TestNextApprovalWalksEveryPair(t *testing.T) {
	t.Parallel()
	decisions := map[envelope.Decision]envelope.Approval{
		envelope.DecisionGrant:  envelope.ApprovalGranted,
		envelope.DecisionDeny:   envelope.ApprovalDenied,
		envelope.DecisionExpire: envelope.ApprovalExpired,
		"no such decision":      "",
	}

	for _, from := range []envelope.Approval{
		envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted,
		envelope.ApprovalDenied, envelope.ApprovalExpired, "no such approval",
	} {
		for d, want := range decisions {
			got, err := envelope.NextApproval(from, d)
			if from == envelope.ApprovalRequired && want != "" {
				if err != nil || got != want {
					t.Errorf("NextApproval(%q, %q) = %q, %v, want %q", from, d, got, err, want)
				}
			} else if !errors.Is(err, fault.Conflict) || got != from {
				t.Errorf("NextApproval(%q, %q) = %q, %v, want to stay with fault.Conflict", from, d, got, err)
			}
		}
	}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	want := []envelope.Status{sent, conflict, failed, skipped}

	for _, s := range append(statuses(), "no such status") {
		if got := envelope.Terminal(s); got != slices.Contains(want, s) {
			t.Errorf("Terminal(%q) = %t", s, got)
		}
	}
}

func TestPhaseOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		approval envelope.Approval
		status   envelope.Status
		want     envelope.Phase
	}{
		{envelope.ApprovalRequired, pending, envelope.PhasePending},
		{envelope.ApprovalRequired, skipped, envelope.PhaseSkipped},
		{envelope.ApprovalGranted, skipped, envelope.PhaseSkipped},
		{envelope.ApprovalDenied, skipped, envelope.PhaseDenied},
		{envelope.ApprovalExpired, pending, envelope.PhaseExpired},
		{envelope.ApprovalAuto, pending, envelope.PhaseApproved},
		{envelope.ApprovalGranted, pending, envelope.PhaseApproved},
		{envelope.ApprovalAuto, sending, envelope.PhaseExecuting},
		{envelope.ApprovalAuto, unknown, envelope.PhaseUnknown},
		{envelope.ApprovalAuto, sent, envelope.PhaseCompleted},
		{envelope.ApprovalGranted, conflict, envelope.PhaseCompleted},
		{envelope.ApprovalGranted, failed, envelope.PhaseFailed},
		{envelope.ApprovalAuto, "no such status", ""},
		{"no such approval", pending, ""},
	}

	for _, tt := range tests {
		if got := envelope.PhaseOf(tt.approval, tt.status, "code"); got != tt.want {
			t.Errorf("PhaseOf(%q, %q) = %q, want %q", tt.approval, tt.status, got, tt.want)
		}
	}
}

func TestEveryPairHasAPhase(t *testing.T) {
	t.Parallel()

	for _, s := range statuses() {
		for _, a := range []envelope.Approval{
			envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted,
			envelope.ApprovalDenied, envelope.ApprovalExpired,
		} {
			for _, code := range []string{"", envelope.CodeUndone} {
				got := envelope.PhaseOf(a, s, code)
				if !got.Valid() {
					t.Errorf("PhaseOf(%q, %q, %q) = %q, want a valid phase", a, s, code, got)
				}
				if undone := code != "" && s == skipped; undone != (got == envelope.PhaseUndone) {
					t.Errorf("PhaseOf(%q, %q, %q) = %q", a, s, code, got)
				}
			}
		}
	}
}

func TestVocabularyIsComplete(t *testing.T) {
	t.Parallel()
	words := []interface{ Valid() bool }{
		pending, sending, sent, conflict, failed, skipped, unknown,
		envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted,
		envelope.ApprovalDenied, envelope.ApprovalExpired,
		envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh,
		envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce,
		envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny,
		envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted,
		envelope.PhaseDenied, envelope.PhaseFailed, envelope.PhaseExpired, envelope.PhaseSkipped, envelope.PhaseUndone, envelope.PhaseUnknown,
	}
	others := []interface{ Valid() bool }{
		envelope.Status(""), envelope.Approval("Auto"), envelope.Risk("none"), envelope.Effect("twice"),
		envelope.Mode("approve"), envelope.Phase("sent"),
	}

	for _, w := range words {
		if !w.Valid() {
			t.Errorf("%T(%q).Valid() = false", w, fmt.Sprint(w))
		}
	}
	for _, w := range others {
		if w.Valid() {
			t.Errorf("%T(%q).Valid() = true", w, fmt.Sprint(w))
		}
	}
}
