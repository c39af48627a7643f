package cascade

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Reason is the rule by which a tier is asked about a message, or is not.
type Reason struct {
	Tier    Tier   `json:"tier"`
	Asked   bool   `json:"asked"`
	Rule    string `json:"rule"`
	Because string `json:"because"`
}

// wantedRow is a row of the table of questions.
type wantedRow struct {
	rule    string
	ask     bool
	because string
	holds   func(known) bool
}

// known is a message with the prediction merged so far.
type known struct {
	Mail
	// merged is the prediction with the replies.
	merged  classify.Prediction
	replies map[Tier]Reply
}

// The range of attention in which a deeper question may change the decision.
const (
	nearFrom = 0.4
	nearTo   = 0.6
)

// never returns the first rows of every tier: messages for which no answer
// could improve the decision.
func never() []wantedRow {
	return []wantedRow{
		{"injection", false, "it gives instructions to an assistant: every tool is off, and an answer could be the sender's",
			func(k known) bool { return k.Signals.Injection }},
		{"phishing", false, "it may be phishing: it never waits for its owner and is never archived, regardless of any model",
			func(k known) bool { return k.Signals.Phishing }},
		{"empty", false, "it has no text to judge", func(k known) bool { return strings.TrimSpace(k.Subject+k.Body) == "" }},
	}
}

// wantedRows returns the table of a tier. The first row that holds decides
// whether the tier is asked; the last one always holds.
func wantedRows(tier Tier) []wantedRow {
	switch tier {
	case T1:
		return append(never(),
			wantedRow{"unsure", true, "the confidence of the decision is under the account's `confident`", known.unsure},
			wantedRow{"sure", false, "the confidence of rules and embedded models suffices", always},
		)
	case T2a:
		return append(never(),
			wantedRow{"bulk", false, "it is one of many alike: a newsletter, a social network, or bulk mail not worth showing by T1", known.bulk},
			wantedRow{"shown", true, "T1 finds it worth showing", func(k known) bool { return k.replies[T1].code(askShow) == "Y" }},
			wantedRow{"unsure", true, "it is still open whether the message needs its owner", known.unsure},
			wantedRow{"act", true, "the confidence of its act is under `confident`, and the act counts: the message may need attention, or is automated", func(k known) bool {
				return k.merged.ActConfidence < k.Settings.ConfidentFrom() && (k.merged.NeedsAttention || k.Decision.Cohort == decide.Transactional)
			}},
			wantedRow{"category", true, "it is automated, and the confidence of its category, which is its label, is under `confident`", func(k known) bool {
				return k.Decision.Cohort == decide.Transactional && k.merged.CategoryConfidence < k.Settings.ConfidentFrom()
			}},
			wantedRow{"sure", false, "nothing is left open", always},
		)
	case T2b:
		return append(never(),
			wantedRow{"unread", false, "T2a was not asked, or had no answer", func(k known) bool { return !k.replies[T2a].Answered() }},
			wantedRow{"near", true, "its need for attention is between 0.4 and 0.6, where a further answer may turn the decision", func(k known) bool {
				return k.merged.Attention >= nearFrom && k.merged.Attention <= nearTo
			}},
			wantedRow{"response", true, "a person wrote it and it needs a response: how soon, and why, helps its owner", known.needsResponse},
			wantedRow{"plain", false, "a further answer would change nothing", always},
		)
	}
	return nil
}

func always(known) bool { return true }

// unsure reports whether it is open if the message needs its owner, by the
// decision without models or by the replies.
func (k known) unsure() bool {
	sure := max(k.merged.Attention, 1-k.merged.Attention)
	if !k.replies[T1].Answered() {
		sure = min(sure, probability(k.Decision.Confidence, 0))
	}
	return !(sure >= k.Settings.ConfidentFrom())
}

// bulkNeed is the sum of need from which bulk mail is asked about too; an
// answer to the owner has it.
const bulkNeed = 3

func (k known) bulk() bool {
	alike := (k.Decision.Cohort == decide.Newsletters || k.Decision.Cohort == decide.Social) && k.Signals.Sums[signal.Need] < bulkNeed
	return alike || k.replies[T1].code(askKind) == "B" && k.replies[T1].code(askShow) == "N"
}

// needsResponse reports whether a person wrote the message and waits for an
// answer.
func (k known) needsResponse() bool {
	switch k.Decision.Cohort {
	case decide.Newsletters, decide.Social, decide.Transactional:
		return false
	case decide.VIP, decide.FirstContact, decide.IntraOrg, decide.CrossOrg, decide.Default:
	}
	return k.merged.Priority == classify.Urgent || k.merged.Priority == classify.NeedsResponse
}

// Reasons returns for each tier why it is asked about a message or not, by the
// replies of earlier tiers.
func Reasons(m Mail) []Reason {
	var reasons []Reason
	var before []Reply
	for _, tier := range Tiers() {
		k := known{Mail: m, merged: Merge(m.Prediction, before), replies: current(before)}
		k.merged.Attention = probability(k.merged.Attention, 0.5)
		rows := wantedRows(tier)
		row := rows[slices.IndexFunc(rows, func(r wantedRow) bool { return r.holds(k) })]
		reasons = append(reasons, Reason{Tier: tier, Asked: row.ask, Rule: row.rule, Because: row.because})
		if r, ok := current(m.Replies)[tier]; ok {
			before = append(before, r)
		}
	}
	return reasons
}

// Wanted returns the tiers that are still to be asked about a message, in
// order, as known before the first of them answers. A tier that has answered or
// failed permanently is not asked again.
func Wanted(m Mail) []Tier {
	have := current(m.Replies)
	var wanted []Tier
	for _, reason := range Reasons(m) {
		if _, ok := have[reason.Tier]; reason.Asked && !ok {
			wanted = append(wanted, reason.Tier)
		}
	}
	return wanted
}
