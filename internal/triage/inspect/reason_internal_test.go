package inspect

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// TestEveryCodeHasAClause: no symbol, act, bucket or veto is left out of sentences.
func TestEveryCodeHasAClause(t *testing.T) {
	t.Parallel()
	for _, r := range signal.Rules() {
		if symbolClauses()[r.Name] == "" {
			t.Errorf("the symbol %s has no clause", r.Name)
		}
	}
	if got, want := len(symbolClauses()), len(signal.Rules()); got != want {
		t.Errorf("%d clauses for %d symbols", got, want)
	}
	for _, act := range classify.HeadAct.Classes() {
		if actClauses()[classify.Act(act)] == "" {
			t.Errorf("the act %s has no clause", act)
		}
	}
	for _, b := range []decide.Bucket{decide.Urgent, decide.Actionable, decide.Informational, decide.Archived} {
		if bucketClauses()[b] == "" {
			t.Errorf("the bucket %s has no clause", b)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		decision decide.Decision
		symbols  []wire.TriageSignal
		text     string
		codes    []string
	}{
		"a request": {
			decide.Decision{Act: classify.Request, Bucket: decide.Urgent},
			[]wire.TriageSignal{
				{Name: signal.ToMeAlone, Axis: "need", Weight: 1}, {Name: signal.DeadlineDate, Axis: "need", Weight: 1.5}, {Name: signal.ReplyToMine, Axis: "need", Weight: 3},
				{Name: signal.QuestionToMe, Axis: "need", Weight: 1}, {Name: signal.CcOnly, Axis: "need", Weight: -1}, {Name: signal.ListID, Axis: "bulk", Weight: 2},
			},
			"It needs its owner soon, because it asks for something, it answers a message of its owner, it names a time limit and it has a question.",
			[]string{"bucket:urgent", "act:request", "REPLY_TO_MINE", "DEADLINE_DATE", "QUESTION_TO_ME"},
		},
		"a newsletter that stays": {
			decide.Decision{Act: classify.FYI, Bucket: decide.Informational, Vetoes: []string{"starred", "follow_up"}},
			[]wire.TriageSignal{{Name: signal.ListID, Axis: "bulk", Weight: 2}, {Name: signal.ListID, Axis: "bulk", Weight: 2}, {Name: "NEW_IN_A_LATER_VERSION", Axis: "bulk", Weight: 9}},
			"It informs, and needs nothing, because it comes over a list; it stays where it is, because it has a star and its owner waits for something in the thread.",
			[]string{"bucket:informational", "LIST_ID", "veto:starred", "veto:follow_up"},
		},
		"a lure": {
			decide.Decision{Act: classify.Request, Bucket: decide.Informational, Question: true},
			[]wire.TriageSignal{{Name: signal.Newsletter, Axis: "kind"}, {Name: signal.URLHomograph, Axis: "risk", Weight: 5}, {Name: signal.SPFFail, Axis: "risk", Weight: 1}},
			"It informs, and needs nothing, because a link mixes scripts within a word and it is a newsletter; its owner is asked, because the models are unsure.",
			[]string{"bucket:informational", "URL_HOMOGRAPH", "NEWSLETTER", "question"},
		},
		"nothing known": {
			decide.Decision{Act: classify.FYI, Bucket: decide.Informational}, nil,
			"It informs, and needs nothing, because it asks for nothing.", []string{"bucket:informational", "act:fyi"},
		},
	} {
		got := reason(test.decision, test.symbols)
		if got.Text != test.text || !slices.Equal(got.Codes, test.codes) {
			t.Errorf("%s: reason = %q %q, want %q %q", name, got.Text, got.Codes, test.text, test.codes)
		}
	}
}
