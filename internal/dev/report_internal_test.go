package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// sent is an action that was sent at the first try.
func sent() wire.Action {
	var a wire.Action
	a.Phase, a.Policy.Mode = envelope.PhaseCompleted, envelope.ModeAllow
	a.Envelope.Result = envelope.Result{Status: envelope.StatusSent, Attempts: 1}
	return a
}

func TestReportShowsDifferences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.md": "# " + minutesTitle, "b.md": "# " + deniedTitle, "old.md": "# Old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := sent()
	failed.Phase = envelope.PhaseFailed
	failed.Envelope.Result = envelope.Result{Status: envelope.StatusFailed, Attempts: 4, Error: &envelope.Failure{Code: "lost", Message: "gone"}}
	d := &demonstration{notes: dir, steps: []step{
		{StepReport: StepReport{Request: "be good", Action: sent()}, want: sentAfter(envelope.ModeAllow, 1)},
		{StepReport: StepReport{Request: "be bad", Action: failed}, want: sentAfter(envelope.ModeAllow, 1)},
	}}

	r := d.report([]string{"old.md"}, []string{"a.md", "b.md", "old.md"})

	want := []string{
		"be bad: phase is failed, want completed",
		"be bad: status is failed, want sent",
		"be bad: attempts is 4, want 1",
		"be bad: its last error is lost: gone",
		`on disk: the new notes are ["# Everybody gets a raise" "# Minutes of the meeting"], want ["# Minutes of the meeting" "# Shopping list"]`,
	}
	if diff := cmp.Diff(want, r.Problems); diff != "" {
		t.Errorf("Problems (-want +got):\n%s", diff)
	}
	if r.Err() == nil {
		t.Error("Err() = nil, want an error")
	}
	if r.OK || !r.Steps[0].OK || r.Steps[1].OK {
		t.Errorf("report = %+v", r)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "Not as expected:") || strings.Contains(text, "ended as expected.") {
		t.Errorf("report:\n%s", text)
	}
}
