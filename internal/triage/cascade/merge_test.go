package cascade_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// lists are the codes of the questions in the schemas.
func lists() map[cascade.Tier]map[string][]string {
	reasons := []string{"Q", "D", "B", "M", "E", "C", "P", "N"}
	return map[cascade.Tier]map[string][]string{
		cascade.T1:  {"show": {"Y", "N"}, "kind": {"B", "L", "D"}},
		cascade.T2a: {"act": {"R", "C", "D", "P", "M", "A", "F"}, "category": {"PE", "NL", "AU", "OF", "RE", "SO"}, "priority": {"U", "N", "I", "O", "P"}},
		cascade.T2b: {"score": {"H", "M", "L"}, "window": {"T", "W", "L", "N"}, "first_reason": reasons, "second_reason": reasons},
	}
}

// drawnReply returns a reply of a tier, often an invalid one.
func drawnReply(rt *rapid.T, calibrated bool) cascade.Reply {
	tier := rapid.SampledFrom(append(cascade.Tiers(), "t9")).Draw(rt, "tier")
	r := cascade.Reply{Tier: tier, Model: "model", Pack: 1, Prompt: rapid.SampledFrom([]string{string(tier) + ".v1", string(tier) + ".v1", "t0.v1"}).Draw(rt, "prompt")}
	if rapid.IntRange(0, 9).Draw(rt, "failed") == 0 {
		r.Failed = model.Invalid
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(lists()[tier])) {
		codes := lists()[tier][name]
		c := cascade.Choice{Question: name, Calibrated: calibrated && rapid.Bool().Draw(rt, "calibrated"), Weight: rapid.SampledFrom([]float64{0, .5, 1, 7, -1, math.NaN()}).Draw(rt, "weight")}
		c.Code = rapid.SampledFrom(append(slices.Clone(codes), "X", "")).Draw(rt, "code")
		c.Shares = drawnShares(rt, len(codes))
		r.Choices = append(r.Choices, c)
	}
	return r
}

// drawnShares returns shares that sum to one, and sometimes invalid ones.
func drawnShares(rt *rapid.T, n int) []float64 {
	shares := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1e-9, .1, .5, 1, 30}), n, n).Draw(rt, "shares")
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	for i := range shares {
		shares[i] /= sum // NaN if the sum is 0
	}
	return shares[:rapid.SampledFrom([]int{n, n, n, n, n - 1, 0}).Draw(rt, "length")]
}

func drawnPrediction(rt *rapid.T) classify.Prediction {
	share := rapid.Float64Range(0, 1)
	p := classify.Prediction{
		Act:      rapid.SampledFrom([]classify.Act{classify.Request, classify.FYI, classify.Deliver, classify.Meet}).Draw(rt, "act"),
		Category: rapid.SampledFrom([]classify.Category{classify.Primary, classify.Receipts}).Draw(rt, "category"), Attention: share.Draw(rt, "attention"),
		Priority:      rapid.SampledFrom([]classify.Priority{classify.Urgent, classify.ForInfo, classify.Promotional, classify.Personal}).Draw(rt, "priority"),
		ActConfidence: share.Draw(rt, "act confidence"), CategoryConfidence: share.Draw(rt, "category confidence"),
		Unwanted: share.Draw(rt, "unwanted"), Phishing: share.Draw(rt, "phishing"), Request: share.Draw(rt, "request"),
		NeedsAttention: rapid.Bool().Draw(rt, "needs attention"), Model: "weights", Corrections: 3, Priorities: map[classify.Priority]float64{},
	}
	for _, q := range []classify.Priority{classify.Urgent, classify.NeedsResponse, classify.ForInfo, classify.Promotional, classify.Personal} {
		p.Priorities[q] = .1
	}
	p.Priorities[p.Priority] = .6
	return p
}

func TestMergeRaisesNoConfidence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawnPrediction(rt)
		replies := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) cascade.Reply { return drawnReply(rt, false) }), 0, 5).Draw(rt, "replies")
		before, asked := p, maps.Clone(p.Priorities)

		got := cascade.Merge(p, replies)

		if got.Unwanted != p.Unwanted || got.Phishing != p.Phishing || got.Request != p.Request || got.Model != p.Model || got.Corrections != p.Corrections {
			rt.Fatalf("replies changed what they may not: %+v", got)
		}
		if diff := cmp.Diff(asked, before.Priorities); diff != "" {
			rt.Fatalf("Merge changed its argument:\n%s", diff)
		}
		most := func(was float64) float64 { return max(was, cascade.Cap) + 1e-9 }
		if got.ActConfidence > most(p.ActConfidence) || got.CategoryConfidence > most(p.CategoryConfidence) {
			rt.Fatalf("an answer without calibration is believed to %.2f, %.2f", got.ActConfidence, got.CategoryConfidence)
		}
		if side := max(got.Attention, 1-got.Attention); !(side <= most(max(p.Attention, 1-p.Attention))) {
			rt.Fatalf("attention is %.2f, was %.2f", got.Attention, p.Attention)
		}
		sum := 0.0
		for q, share := range got.Priorities {
			if sum += share; !(share >= 0 && share <= most(p.Priorities[q])) {
				rt.Fatalf("the priority %s has %v, and had %v", q, share, p.Priorities[q])
			}
		}
		if math.Abs(sum-1) > 1e-3 || got.Priorities[got.Priority] == 0 {
			rt.Fatalf("the priorities are %v, and %s is chosen", got.Priorities, got.Priority)
		}
	})
}

// drawnFacts returns messages of all cohorts, most of them of proven and known
// senders, at the highest levels.
func drawnFacts(rt *rapid.T) decide.Facts {
	known := signal.Sender{Received: 20, Sent: 5, Replied: 5, FirstSeen: time.Unix(0, 0), LastSeen: time.Unix(9e6, 0)}
	f := decide.Facts{
		Headers: decide.Headers{
			From: []string{rapid.SampledFrom([]string{"news@shop.example", "orders@shop.example", "ana@partner.example", "bo@example.org"}).Draw(rt, "from")},
			To:   []string{"owner@example.org"}, ListUnsubscribe: rapid.Bool().Draw(rt, "list"),
		},
		Folder: mailbox.UseInbox, Prediction: drawnPrediction(rt),
		Authentication: signal.Authentication{DMARC: signal.AuthPass, Aligned: rapid.IntRange(0, 3).Draw(rt, "aligned") > 0},
		Settings: decide.Settings{
			Addresses: []string{"owner@example.org"}, Domains: []string{"example.org"}, Quarantine: true, Levels: map[decide.Cohort]decide.Level{},
			Confident: rapid.SampledFrom([]float64{0, .5, .9}).Draw(rt, "confident"),
		},
	}
	if rapid.Bool().Draw(rt, "known") {
		f.Sender = known
	}
	if rapid.Bool().Draw(rt, "highest levels") {
		for _, c := range []decide.Cohort{decide.VIP, decide.FirstContact, decide.Newsletters, decide.Social, decide.Transactional, decide.IntraOrg, decide.CrossOrg, decide.Default} {
			f.Settings.Levels[c] = decide.L5
		}
	}
	flag := func(name string) bool { return rapid.IntRange(0, 7).Draw(rt, name) == 0 }
	f.Signals = signal.Result{Suspicious: flag("suspicious"), Phishing: flag("phishing"), Injection: flag("injection")}
	return f
}

// TestRepliesOnlyAddToWhatNeedsAttention checks that the messages that need
// attention with a model's server include those that need it without, for any
// answers.
func TestRepliesOnlyAddToWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	var waited, added bool
	property := func(rt *rapid.T) {
		f := drawnFacts(rt)
		f.Prediction.Urgent = rapid.Bool().Draw(rt, "urgent")
		replies := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) cascade.Reply { return drawnReply(rt, true) }), 0, 5).Draw(rt, "replies")

		d, without := cascade.Decide(f, replies), decide.Decide(f)
		p := cascade.Merge(f.Prediction, replies)

		if without.Bucket.NeedsOwner() && !d.Bucket.NeedsOwner() {
			rt.Fatalf("the message is %s, and %s without replies", d.Bucket, without.Bucket)
		}
		if f.Prediction.NeedsAttention && !p.NeedsAttention || f.Prediction.Urgent && !p.Urgent {
			rt.Fatalf("replies took from the need for attention: %+v", p)
		}
		waited = waited || without.Bucket.NeedsOwner() && len(replies) > 0
		added = added || d.Bucket.NeedsOwner() && !without.Bucket.NeedsOwner()
	}
	// One set of a hundred messages in a hundred has none that waits only with replies.
	for range 10 {
		if rapid.Check(t, property); waited && added {
			return
		}
	}
	t.Errorf("messages that wait without replies: %v; that wait only with them: %v", waited, added)
}

func TestRepliesNeverAllowMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := drawnFacts(rt)
		calibrated := rapid.Bool().Draw(rt, "calibrated")
		replies := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) cascade.Reply { return drawnReply(rt, calibrated) }), 0, 5).Draw(rt, "replies")

		d, without := cascade.Decide(f, replies), decide.Decide(f)

		// The most that the embedded models could have led to at any
		// confidence.
		highest := decide.L0
		for _, attention := range []float64{0, 1} {
			for priority := range f.Prediction.Priorities {
				sure := f
				sure.Prediction.Attention, sure.Prediction.Priority = attention, priority
				highest = max(highest, decide.Decide(sure).Allowed)
			}
		}
		if d.Allowed > highest || d.Asked != without.Asked || d.Cohort != without.Cohort {
			rt.Fatalf("level %v of %v in %s, without replies %v of %v in %s", d.Allowed, d.Asked, d.Cohort, without.Allowed, without.Asked, without.Cohort)
		}
		for _, want := range d.Wants {
			checkWant(rt, f, d, want)
		}
		if !calibrated && d.Bucket == decide.Archived && without.Bucket != decide.Archived {
			rt.Fatal("answers without calibration put a message away that would have stayed")
		}
		if (f.Signals.Phishing || f.Signals.Injection || f.Signals.Suspicious) && d.Bucket == decide.Archived {
			rt.Fatal("a flagged message is put away")
		}
		if diff := cmp.Diff(without.Vetoes, d.Vetoes, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("replies changed the vetoes:\n%s", diff)
		}
		if len(d.Trace) < len(without.Trace)-5 {
			rt.Fatal("the trace is incomplete")
		}
	})
}

// checkWant checks an action against the table of levels.
func checkWant(rt *rapid.T, f decide.Facts, d decide.Decision, want decide.Want) {
	from := map[decide.Action]decide.Level{decide.Label: decide.L2, decide.Flag: decide.L4, decide.Archive: decide.L2, decide.Draft: decide.L2, decide.Quarantine: decide.L1}
	least, ok := from[want.Action]
	switch {
	case !ok:
		rt.Fatalf("%s is wanted", want.Action)
	case f.Signals.Injection:
		rt.Fatalf("%s is wanted for a message that gives instructions", want.Action)
	case f.Signals.Phishing && want.Action != decide.Quarantine:
		rt.Fatalf("%s is wanted for phishing", want.Action)
	case d.Allowed < least:
		rt.Fatalf("%s is wanted at %v", want.Action, d.Allowed)
	case !want.Confirm && (d.Allowed < decide.L4 || want.Action == decide.Quarantine || f.Signals.Suspicious):
		rt.Fatalf("%s is left to policy at %v", want.Action, d.Allowed)
	}
}

func TestRepliesAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	want := cascade.Reply{
		Tier: cascade.T1, Model: "m", Prompt: "t1.v1", Pack: 3,
		Choices: []cascade.Choice{{Question: "show", Code: "Y", Value: "yes", Confidence: 1. / 3, Shares: []float64{1. / 3, 2. / 3}, Weight: .5}},
	}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got cascade.Reply
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func reply(tier cascade.Tier, calibrated bool, codes map[string]string, sure float64) cascade.Reply {
	r := cascade.Reply{Tier: tier, Model: "m", Prompt: string(tier) + ".v1", Pack: 1}
	for name, list := range lists()[tier] {
		shares := make([]float64, len(list))
		for i, code := range list {
			shares[i] = (1 - sure) / float64(len(list)-1)
			if code == codes[name] {
				shares[i] = sure
			}
		}
		r.Choices = append(r.Choices, cascade.Choice{Question: name, Code: codes[name], Confidence: sure, Shares: shares, Calibrated: calibrated, Weight: .5})
	}
	return r
}

func TestMerge(t *testing.T) {
	t.Parallel()
	base := classify.Prediction{
		Act: classify.FYI, ActConfidence: .5, Category: classify.Primary, CategoryConfidence: .6, Priority: classify.ForInfo, Attention: .4, NeedsAttention: true,
		Priorities: map[classify.Priority]float64{classify.Urgent: .1, classify.NeedsResponse: .2, classify.ForInfo: .5, classify.Promotional: .1, classify.Personal: .1},
	}
	asks := map[string]string{"act": "R", "category": "PE", "priority": "N"}
	calm := map[string]string{"act": "F", "category": "PE", "priority": "I"}
	for name, test := range map[string]struct {
		replies []cascade.Reply
		want    classify.Prediction
	}{
		"a model that differs counts half": {
			[]cascade.Reply{reply(cascade.T2a, false, asks, .9)},
			classify.Prediction{Act: classify.Request, ActConfidence: (.65 + .5/6) / 2, Category: classify.Primary, CategoryConfidence: .65, Priority: classify.NeedsResponse, Attention: (.4 + .65) / 2, NeedsAttention: true},
		},
		"a model that agrees counts where it is surer": {
			[]cascade.Reply{reply(cascade.T2a, false, calm, .9)},
			classify.Prediction{Act: classify.FYI, ActConfidence: .65, Category: classify.Primary, CategoryConfidence: .65, Priority: classify.ForInfo, Attention: .35, NeedsAttention: true},
		},
		"a calibrated model that finds no need takes none away": {
			[]cascade.Reply{reply(cascade.T2a, true, calm, .9)},
			classify.Prediction{Act: classify.FYI, ActConfidence: .9, Category: classify.Primary, CategoryConfidence: .9, Priority: classify.ForInfo, Attention: .05, NeedsAttention: true},
		},
		"not worth showing bounds the attention": {
			[]cascade.Reply{reply(cascade.T1, true, map[string]string{"show": "N", "kind": "B"}, .9)},
			classify.Prediction{Act: classify.FYI, ActConfidence: .5, Category: classify.Primary, CategoryConfidence: .6, Priority: classify.ForInfo, Attention: .1, NeedsAttention: true},
		},
		"worth showing raises no confidence": {
			[]cascade.Reply{reply(cascade.T1, true, map[string]string{"show": "Y", "kind": "D"}, .9)},
			classify.Prediction{Act: classify.FYI, ActConfidence: .5, Category: classify.Primary, CategoryConfidence: .6, Priority: classify.ForInfo, Attention: .4, NeedsAttention: true},
		},
		"a later tier has the last word": {
			[]cascade.Reply{reply(cascade.T2b, false, map[string]string{"score": "H", "window": "T", "first_reason": "Q", "second_reason": "N"}, .6), reply(cascade.T1, true, map[string]string{"show": "N", "kind": "B"}, .9)},
			classify.Prediction{Act: classify.FYI, ActConfidence: .5, Category: classify.Primary, CategoryConfidence: .6, Priority: classify.ForInfo, Attention: (.1 + .65) / 2, NeedsAttention: true},
		},
	} {
		got := cascade.Merge(base, test.replies)
		if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(classify.Prediction{}, "Priorities")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An automated message that only its act keeps from being archived, and whose
// text prevents a move without a person.
func TestOnlyACalibratedAnswerArchives(t *testing.T) {
	t.Parallel()
	f := decide.Facts{
		Headers: decide.Headers{From: []string{"orders@shop.example"}, To: []string{"owner@example.org"}}, Folder: mailbox.UseInbox,
		Sender:         signal.Sender{Received: 20, Sent: 1, FirstSeen: time.Unix(0, 0), LastSeen: time.Unix(9e6, 0)},
		Authentication: signal.Authentication{DMARC: signal.AuthPass, Aligned: true},
		Signals:        signal.Result{Keeps: signal.KeepsWords},
		Prediction: classify.Prediction{
			Act: classify.Request, ActConfidence: .3, Category: classify.Receipts, CategoryConfidence: .8, Priority: classify.ForInfo, Attention: .1,
			Priorities: map[classify.Priority]float64{classify.ForInfo: .9, classify.Urgent: .1},
		},
	}
	calm := map[string]string{"act": "F", "category": "RE", "priority": "I"}
	if without := decide.Decide(f); without.Bucket != decide.Informational {
		t.Fatalf("without models the message is %s", without.Bucket)
	}

	for calibrated, want := range map[bool]decide.Bucket{false: decide.Informational, true: decide.Archived} {
		d := cascade.Decide(f, []cascade.Reply{reply(cascade.T2a, calibrated, calm, .9)})

		if d.Bucket != want || d.Act != classify.FYI {
			t.Errorf("with a calibrated answer: %t: the message is %s, its act %s", calibrated, d.Bucket, d.Act)
		}
		if d.Trace[0].Rule != "t2a" || d.Trace[0].To != "act fyi, category receipts, priority fyi" {
			t.Errorf("the trace begins with %+v", d.Trace[0])
		}
	}
	f.Prediction.Act = classify.FYI
	if without := decide.Decide(f); without.Bucket != decide.Archived {
		t.Fatalf("without models the message that informs is %s", without.Bucket)
	}
	show := reply(cascade.T1, false, map[string]string{"show": "Y", "kind": "D"}, .6)
	if d := cascade.Decide(f, []cascade.Reply{show, reply(cascade.T2a, true, calm, .9)}); d.Bucket != decide.Informational {
		t.Errorf("a message that is worth showing is %s", d.Bucket)
	}
	f.Prediction.Act = classify.Request
	if d := cascade.Decide(f, nil); len(d.Trace) != len(decide.Decide(f).Trace) {
		t.Error("without replies the decision is another one")
	}
	failed := cascade.Decide(f, []cascade.Reply{{Tier: cascade.T2a, Prompt: "t2a.v1", Pack: 1, Failed: model.Invalid}})
	if failed.Bucket != decide.Informational || failed.Trace[0].To != "no answer" {
		t.Errorf("with a failed reply: %s, %+v", failed.Bucket, failed.Trace[0])
	}
}
