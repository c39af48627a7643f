package decide_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// TestVetoes takes a newsletter that would be archived and adds one reason
// after the other to keep it.
func TestVetoes(t *testing.T) {
	t.Parallel()
	flag := func(flags ...string) func(*decide.Facts) {
		return func(f *decide.Facts) { f.Flags = flags }
	}

	for name, tt := range map[string]struct {
		change func(*decide.Facts)
		want   []string
	}{
		"nothing":                   {func(*decide.Facts) {}, nil},
		"read and answered":         {flag("\\Seen", "\\Answered"), nil},
		"Gmail's important":         {flag("\\Important"), []string{"important"}},
		"the keyword for it":        {flag("$Important"), []string{"important"}},
		"the API's word for it":     {flag("IMPORTANT"), []string{"important"}},
		"Thunderbird's first":       {flag("$label1"), []string{"important"}},
		"a star":                    {flag("\\Flagged"), []string{"starred"}},
		"the API's word for a star": {flag("STARRED"), []string{"starred"}},
		"a task":                    {flag("ACTION"), []string{"task_label"}},
		"a task below a folder":     {flag("Work/To-Do"), []string{"task_label"}},
		"a task with signs":         {flag("@follow_up"), []string{"task_label"}},
		"Thunderbird's fourth":      {flag("$label4"), []string{"task_label"}},
		"a task of its own name": {func(f *decide.Facts) {
			f.Flags, f.Settings.TaskLabels = []string{"ma-liste"}, []string{"Ma liste"}
		}, []string{"task_label"}},
		"a label without a task":  {flag("Reaction", "Todos"), nil},
		"a label of triage":       {flag("Countersign_action"), nil},
		"an action tag":           {flag("Countersign_do_task"), nil},
		"an answer in the thread": {func(f *decide.Facts) { f.OwnerReplied = true }, []string{"owner_replied"}},
		"an open follow-up":       {func(f *decide.Facts) { f.FollowUp = true }, []string{"follow_up"}},
		"a security alert":        {func(f *decide.Facts) { f.Signals.SecurityAlert = true }, []string{"security_alert"}},
		"the symbol of one":       {func(f *decide.Facts) { f.Signals.Symbols = []signal.Symbol{{Name: signal.SecurityAlert}} }, []string{"security_alert"}},
		"a one-time code":         {func(f *decide.Facts) { f.Signals.Symbols = []signal.Symbol{{Name: signal.OneTimeCode}} }, []string{"one_time_code"}},
		"suspicion":               {func(f *decide.Facts) { f.Signals.Suspicious = true }, []string{"suspicious"}},
		"phishing":                {func(f *decide.Facts) { f.Signals.Phishing = true }, []string{"phishing"}},
		"instructions":            {func(f *decide.Facts) { f.Signals.Injection = true }, []string{"injection"}},
		"touched by its owner":    {func(f *decide.Facts) { f.Earlier.Touched = true }, []string{"touched"}},
		"put back by its owner":   {func(f *decide.Facts) { f.Earlier.Undone = []decide.Action{decide.Archive} }, []string{"undone"}},
		"a label that was taken":  {func(f *decide.Facts) { f.Earlier.Undone = []decide.Action{decide.Label} }, nil},
		"another folder":          {func(f *decide.Facts) { f.Folder = mailbox.UseOther }, []string{"elsewhere"}},
		"the sent mail":           {func(f *decide.Facts) { f.Folder = mailbox.UseSent }, []string{"elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := newsletter()
			tt.change(&facts)

			d := decide.Decide(facts)

			if diff := cmp.Diff(tt.want, d.Vetoes); diff != "" {
				t.Errorf("vetoes (-want +got):\n%s", diff)
			}
			if moved := wanted(d, decide.Archive) || d.Bucket == decide.Archived; moved != (tt.want == nil) {
				t.Errorf("bucket %s and wants %v with vetoes %v", d.Bucket, d.Wants, d.Vetoes)
			}
		})
	}
}

// TestTraceHasTheReason checks the reason that `why` shows.
func TestTraceHasTheReason(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		facts  decide.Facts
		change func(*decide.Facts)
		want   decide.Step
	}{
		"instructions": {newsletter(), func(f *decide.Facts) { f.Signals.Injection = true },
			decide.Step{Rule: "action", From: "label", To: "not proposed", Because: "the message gives instructions to an assistant"}},
		"phishing": {newsletter(), func(f *decide.Facts) { f.Signals.Phishing = true },
			decide.Step{Rule: "action", From: "label", To: "not proposed", Because: "the message may be phishing"}},
		"quarantine": {newsletter(), func(f *decide.Facts) { f.Signals.Phishing, f.Settings.Quarantine = true, true },
			decide.Step{Rule: "action", From: "quarantine", To: "proposed; a person approves", Because: "it is always confirmed by a person"}},
		"suspicion": {newsletter(), func(f *decide.Facts) { f.Signals.Suspicious = true },
			decide.Step{Rule: "action", From: "label", To: "proposed; a person approves", Because: "automatic from L4, but only L2 is allowed"}},
		"a veto": {newsletter(), func(f *decide.Facts) { f.OwnerReplied = true },
			decide.Step{Rule: "action", From: "archive", To: "not proposed", Because: "vetoed: owner_replied"}},
		"touched": {newsletter(), func(f *decide.Facts) { f.Earlier.Touched = true },
			decide.Step{Rule: "action", From: "archive", To: "not proposed", Because: "its owner has moved or flagged it since"}},
		"undone": {newsletter(), func(f *decide.Facts) { f.Earlier.Undone = []decide.Action{decide.Label} },
			decide.Step{Rule: "action", From: "label", To: "not proposed", Because: "its owner has reversed it"}},
		"a starred urgent message": {colleague(), func(f *decide.Facts) {
			f.Prediction.Priority, f.Flags = classify.Urgent, []string{"\\Flagged"}
			f.Settings.Levels = map[decide.Cohort]decide.Level{decide.IntraOrg: decide.L4}
		}, decide.Step{Rule: "action", From: "flag", To: "not proposed", Because: "it is already starred"}},
		"a request from outside": {colleague(), func(f *decide.Facts) {
			f.Headers.Cc, f.Prediction.Priority = []string{"eve@foreign.example"}, classify.Urgent
			f.Settings.Levels = map[decide.Cohort]decide.Level{decide.CrossOrg: decide.L5}
		}, decide.Step{Rule: "action", From: "flag", To: "proposed; a person approves", Because: "for this act and cohort nothing is automatic"}},
		"a suspicious request": {colleague(), func(f *decide.Facts) { f.Signals.Suspicious = true },
			decide.Step{Rule: "action", From: "draft", To: "not proposed", Because: "the message is suspicious"}},
		"nothing to do": {colleague(), func(f *decide.Facts) { f.Prediction.Act = classify.Commit },
			decide.Step{Rule: "result", To: "nothing is proposed", Because: "no action is left; the message is only shown as actionable"}},
		"a question": {colleague(), func(f *decide.Facts) { f.Prediction.Attention = 0.3 },
			decide.Step{Rule: "question", To: "its owner is asked", Because: "the confidence of 0.30 is under 0.50"}},
		"a forged colleague": {colleague(), func(f *decide.Facts) {
			f.Authentication = signal.Authentication{DMARC: signal.AuthFail}
			f.Settings.Levels = map[decide.Cohort]decide.Level{decide.IntraOrg: decide.L0}
		}, decide.Step{Rule: "level claimed", From: "L1", To: "L0", Because: "the sender may be somebody else: at most the level of the claimed sender"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.change(&tt.facts)

			d := decide.Decide(tt.facts)

			if !slices.Contains(d.Trace, tt.want) {
				t.Errorf("the trace has no step %v:\n%v", tt.want, d.Trace)
			}
		})
	}
}

// TestTraceHoldsNoText puts a canary word into every field that a sender can
// write.
func TestTraceHoldsNoText(t *testing.T) {
	t.Parallel()
	const canary = "canary"
	facts := newsletter()
	facts.Headers.From, facts.Headers.To = []string{canary + "@" + canary + ".example"}, []string{canary}
	facts.Flags = []string{canary}
	facts.Signals = signal.Result{Code: canary, Symbols: []signal.Symbol{{Name: signal.Receipt, Evidence: canary}}}
	facts.Prediction.Act, facts.Prediction.Category, facts.Prediction.Priority = canary, canary, canary

	d := decide.Decide(facts)

	for _, step := range d.Trace {
		if strings.Contains(step.Rule+step.From+step.To+step.Because, canary) {
			t.Errorf("the trace holds text of the mail: %v", step)
		}
	}
}
