package evaluate

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// judged is a message with its labels and triage's results.
type judged struct {
	labels     corpus.Labels
	message    *message.Message
	signals    signal.Result
	prediction classify.Prediction
	decision   decide.Decision
	id         string
}

// judge parses a message without an account, and runs all of triage.
func judge(m *classify.Model, e corpus.Example) judged {
	j, facts := unknown(m, e)
	j.decision = decide.Decide(facts)
	return j
}

// unknown runs the rules and the model on a message without an account, and
// returns the facts for a decision.
func unknown(m *classify.Model, e corpus.Example) (judged, decide.Facts) {
	msg, about, found := classify.Read(e)
	p := m.Predict(m.Features(msg, about, found))
	found = found.WithModel(p.Phishing)
	return judged{labels: e.Labels, message: msg, signals: found, prediction: p, id: e.ID}, decide.Facts{
		Headers: decide.HeadersOf(msg), Folder: mailbox.UseInbox, Authentication: about.Authentication, Signals: found, Prediction: p,
		Settings: decide.Settings{Addresses: about.Addresses, Domains: about.Domains},
	}
}

func (j judged) label() classify.Priority { return classify.Priority(j.labels.Priority) }

// ladder returns the priorities for which "within one" counts.
func ladder() []classify.Priority {
	return []classify.Priority{classify.Urgent, classify.NeedsResponse, classify.ForInfo, classify.Promotional}
}

// withinOne reports whether two priorities are equal or neighbours on the
// ladder. Personal is not on it.
func withinOne(a, b classify.Priority) bool {
	i, j := slices.Index(ladder(), a), slices.Index(ladder(), b)
	return a == b || i >= 0 && j >= 0 && max(i-j, j-i) == 1
}

func attention(p classify.Priority) bool { return p == classify.Urgent || p == classify.NeedsResponse }

// priorities returns the figures about priorities.
func priorities(all []judged, repeats int) []Figure {
	var exact, within share
	var urgent, first, chosen, needed found
	var calibration classify.Calibration
	classes := make([]found, len(classify.HeadPriority.Classes()))
	for _, j := range all {
		predicted, is := j.prediction.Priority, j.label()
		exact.add(predicted == is)
		within.add(withinOne(predicted, is))
		urgent.add(j.prediction.Urgent, is == classify.Urgent)
		first.add(j.decision.Bucket == decide.Urgent, is == classify.Urgent)
		needed.add(j.prediction.NeedsAttention, attention(is))
		chosen.add(attention(predicted), attention(is))
		calibration.Add(j.prediction.Confidence(), predicted == is)
		for i, class := range classify.HeadPriority.Classes() {
			classes[i].add(string(predicted) == class, string(is) == class)
		}
	}
	out := []Figure{exact.figure("exact", repeats), within.figure("within one", repeats)}
	out = append(out, urgent.figures("urgent (over its cut)", repeats)[:2]...)
	out = append(out, first.figures("urgent (by the bucket)", repeats)[:2]...)
	out = append(out, needed.figures("attention (over its cut)", repeats)[:2]...)
	out = append(out, chosen.figures("attention (as chosen)", repeats)[:2]...)
	out = append(out, chosen.accuracy().figure("attention (as chosen) accuracy", repeats))
	for i, class := range classify.HeadPriority.Classes() {
		out = append(out, classes[i].figures(class, repeats)[:2]...)
	}
	return append(out, Figure{Name: "calibration error", Value: calibration.Error()})
}

// addFlags adds the section about the flag of phishing. The weights of the rules
// were changed after inspecting the misses of the first run.
func (r *run) addFlags(set string, all []judged) {
	r.add(Section{Set: set, Mode: Tuned, Examples: len(all), Figures: flags(all, 1)})
}

// others returns the figures about acts, categories, unwanted mail and
// phishing, where there are labels.
func others(all []judged, repeats int) []Figure {
	var act, category share
	var unwanted, phishing found
	for _, j := range all {
		if j.labels.Act != "" {
			act.add(string(j.prediction.Act) == j.labels.Act)
		}
		if j.labels.Category != "" {
			category.add(string(j.prediction.Category) == j.labels.Category)
		}
		if is := j.labels.Unwanted; is != nil {
			unwanted.add(j.prediction.Unwanted >= 0.5, *is)
		}
		if is := j.labels.Phishing; is != nil {
			phishing.add(j.prediction.Phishing >= 0.5, *is)
		}
	}
	var out []Figure
	if act.of > 0 {
		out = append(out, act.figure("act exact", repeats))
	}
	if category.of > 0 {
		out = append(out, category.figure("category exact", repeats))
	}
	if unwanted != (found{}) {
		out = append(out, unwanted.figures("unwanted", repeats)...)
	}
	if phishing != (found{}) {
		out = append(out, phishing.figures("phishing (classifier)", repeats)...)
	}
	return out
}
