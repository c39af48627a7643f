package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const (
	fakeCheckpoints = 4
	fakeParts       = 3
)

// fakeAuditor has four checkpoints and three parts of rows, each with a finding. It
// is interrupted at the call with a number.
type fakeAuditor struct {
	auditor
	calls, interrupted int
	stop               context.CancelFunc
}

func (f *fakeAuditor) call(ctx context.Context) error {
	if f.calls++; f.calls == f.interrupted {
		f.stop()
	}
	return ctx.Err()
}

func (f *fakeAuditor) verify(ctx context.Context, opt audit.Options) (audit.Report, error) {
	no := opt.After + 1
	r := audit.Report{Checkpoints: 1, Covered: tellEvery, Findings: []audit.Finding{{Kind: audit.Changed, Checkpoint: no}}}
	if no < fakeCheckpoints {
		r.Next = no
	}
	return r, f.call(ctx)
}

func (f *fakeAuditor) verifyRows(ctx context.Context, opt audit.RowsOptions) (*audit.RowsReport, error) {
	r := &audit.RowsReport{Part: opt.Part}
	if r.Part == (audit.Part{}) {
		r.Part = audit.Part{No: 1, Of: fakeParts}
	}
	r.Events = tellEvery
	opt.Progress(*r)
	r.Actions, r.Findings = 1, []audit.Finding{{Kind: audit.Missing, Table: "votes", Action: uuid.UUID{15: byte(r.Part.No)}}}
	if r.Part.No < fakeParts {
		r.Next = audit.Part{No: r.Part.No + 1, Of: fakeParts}
	}
	return r, f.call(ctx)
}

// verifyFake runs verify with --json, and returns what it says and the exit code.
func verifyFake(t *testing.T, f *fakeAuditor, from string) (got verified, stderr string, code int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f.stop = stop
	var out, errs bytes.Buffer
	sys := command.System{Out: &out, Err: &errs, Program: "countersign", Getenv: func(string) string { return "" }}
	code = command.Execute(ctx, []string{"--json", "verify"}, sys, func(a *command.App) *cobra.Command {
		root := &cobra.Command{Use: "countersign", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(&cobra.Command{Use: "verify", RunE: func(cmd *cobra.Command, _ []string) (err error) {
			v := &verification{a: a, log: f}
			if from != "" {
				v.at, err = parsePlace(from)
			}
			if err != nil {
				return err
			}
			return v.run(cmd.Context())
		}})
		return root
	})
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	return got, errs.String(), code
}

func TestAnInterruptedVerificationContinues(t *testing.T) {
	t.Parallel()
	whole, told, code := verifyFake(t, &fakeAuditor{}, "")
	if code != command.ExitFailed || len(whole.Findings) != fakeCheckpoints || len(whole.Rows.Findings) != fakeParts || whole.ContinueFrom != "" {
		t.Fatalf("a whole run = %d, %+v", code, whole)
	}
	for _, want := range []string{`{"progress":{"checkpoint_no":1,"events":100000}}`, `{"progress":{"actions":0,"events_read":100000,"part":"2/3"}}`} {
		if !strings.Contains(told, want+"\n") {
			t.Errorf("progress %s does not have %s", told, want)
		}
	}
	for n, want := range map[int]string{2: "1", 4: "3", 5: "rows:1/3", 7: "rows:3/3"} {
		first, _, code := verifyFake(t, &fakeAuditor{interrupted: n}, "")
		if code != command.ExitInterrupted || first.ContinueFrom != want {
			t.Errorf("interrupted at call %d: exit %d, continue from %q; want %d, %q", n, code, first.ContinueFrom, command.ExitInterrupted, want)
			continue
		}

		second, _, _ := verifyFake(t, &fakeAuditor{}, first.ContinueFrom)

		if second.From != want || second.ContinueFrom != "" {
			t.Errorf("continued from %s: from %q, continue from %q", want, second.From, second.ContinueFrom)
		}
		if diff := cmp.Diff(append(whole.Findings, whole.Rows.Findings...), both(first, second), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("interrupted at call %d, both runs (-whole +both):\n%s", n, diff)
		}
	}
	if got, _, code := verifyFake(t, &fakeAuditor{interrupted: 1}, ""); code != command.ExitInterrupted || got.ContinueFrom != "" {
		t.Errorf("interrupted at once = %d, %+v; want no output", code, got)
	}
}

// both returns the findings of two runs, those of events first.
func both(first, second verified) []audit.Finding {
	all := append(first.Findings, second.Findings...)
	for _, r := range []*audit.RowsReport{first.Rows, second.Rows} {
		if r != nil {
			all = append(all, r.Findings...)
		}
	}
	return all
}

func TestPlacesReadBack(t *testing.T) {
	t.Parallel()
	for _, p := range []place{{}, {checkpoint: 412}, {rows: true}, {rows: true, part: audit.Part{No: 2, Of: 5}}} {
		if got, err := parsePlace(p.String()); got != p || err != nil {
			t.Errorf("parsePlace(%s) = %v, %v, want %v", p, got, err, p)
		}
	}
	for _, text := range []string{"x", "-1", "rows:", "rows:0/5", "rows:6/5", "rows:1", "rows:1/1000001", "rows:1/2/3", fmt.Sprint(1<<62, 0)} {
		if got, err := parsePlace(text); err == nil {
			t.Errorf("parsePlace(%s) = %v, want an error", text, got)
		}
	}
}
