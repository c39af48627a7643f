package envelope_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

func TestOutcomeString(t *testing.T) {
	t.Parallel()
	decided, ended := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(2026, 1, 2, 4, 0, 0, 0, time.FixedZone("", 3600))
	token, operator := uuid.MustParse("0198c7a0-0000-7000-8000-000000000001"), uuid.MustParse("0198c7a0-0000-7000-8000-000000000002")
	ada := envelope.NewActor("ada", token, operator)
	const brief = "ada (0198c7a0-0000-7000-8000-000000000002)"
	rows := map[string]struct {
		outcome envelope.Outcome
		want    string
	}{
		"waits":          {envelope.Outcome{Phase: envelope.PhasePending}, "it waits for a decision"},
		"needs nobody":   {envelope.Outcome{Phase: envelope.PhaseApproved}, "it needs no decision"},
		"approved":       {envelope.Outcome{Phase: envelope.PhaseApproved, DecidedBy: ada, DecidedAt: &decided}, "it was approved by " + brief + " at 2026-01-02T03:04:05Z"},
		"denied":         {envelope.Outcome{Phase: envelope.PhaseDenied, DecidedBy: ada, DecidedAt: &decided, Note: "not today"}, "it was denied by " + brief + " at 2026-01-02T03:04:05Z: not today"},
		"denied by rule": {envelope.Outcome{Phase: envelope.PhaseDenied, Mode: envelope.ModeDeny}, "policy denied it"},
		"denied after a wait that a changed tool began": {envelope.Outcome{Phase: envelope.PhaseDenied, DecidedBy: ada, Failure: &envelope.Failure{Code: "drift"}}, "it was denied by " + brief},
		"killed":  {envelope.Outcome{Phase: envelope.PhaseDenied, DecidedBy: ada, DecidedAt: &decided, Failure: &envelope.Failure{Code: "killed", Message: "the kill switch"}}, "it was stopped by " + brief + " at 2026-01-02T03:04:05Z: the kill switch"},
		"expired": {envelope.Outcome{Phase: envelope.PhaseExpired, DecidedBy: "system", ExpiresAt: &decided}, "nobody decided about it by 2026-01-02T03:04:05Z"},
		"undone while it waited": {
			envelope.Outcome{Phase: envelope.PhaseUndone, DecidedBy: ada, DecidedAt: &decided, EndedAt: &ended, Failure: &envelope.Failure{Code: "undone", Message: envelope.UndoneBy + string(ada)}},
			"it was undone by " + brief + " at 2026-01-02T03:00:00Z",
		},
		"undone after an approval": {
			envelope.Outcome{Phase: envelope.PhaseUndone, DecidedBy: ada, DecidedAt: &decided, EndedAt: &ended, Failure: &envelope.Failure{Code: "undone", Message: envelope.UndoneBy + "triage"}},
			"it was undone by triage at 2026-01-02T03:00:00Z",
		},
		"executing": {envelope.Outcome{Phase: envelope.PhaseExecuting}, "its call is in progress"},
		"completed": {envelope.Outcome{Phase: envelope.PhaseCompleted, EndedAt: &ended}, "its call succeeded at 2026-01-02T03:00:00Z"},
		"failed":    {envelope.Outcome{Phase: envelope.PhaseFailed, EndedAt: &ended, Failure: &envelope.Failure{Message: "a tool's text"}}, "its call failed at 2026-01-02T03:00:00Z"},
		"skipped": {
			envelope.Outcome{Phase: envelope.PhaseSkipped, DecidedBy: ada, DecidedAt: &decided, EndedAt: &ended, Failure: &envelope.Failure{Code: "deadline", Message: "its deadline passed"}},
			"it was approved by " + brief + " at 2026-01-02T03:04:05Z, and it was skipped at 2026-01-02T03:00:00Z: its deadline passed",
		},
		"unknown": {envelope.Outcome{Phase: envelope.PhaseUnknown}, "it is unknown whether its call had an effect"},
	}
	said := make(map[envelope.Phase]bool)
	for name, row := range rows {
		if got := row.outcome.String(); got != row.want {
			t.Errorf("%s: String() = %q, want %q", name, got, row.want)
		}
		said[row.outcome.Phase] = true
	}
	for _, phase := range envelope.Phases() {
		if !said[phase] {
			t.Errorf("no row for the phase %s", phase)
		}
	}
}
