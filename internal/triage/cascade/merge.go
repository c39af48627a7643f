package cascade

import (
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// awayFrom is the confidence from which a calibrated answer may say by itself
// that a message needs no attention.
const awayFrom = 0.8

// Merge returns the prediction of the embedded models with what the replies say.
//
// Where a model agrees, the surer of the two counts; where it differs, the
// weighted mean. So no confidence is higher than the higher one of the two, and
// that of an answer without calibration is at most Cap. No reply changes what
// the prediction says of unwanted mail and phishing.
func Merge(p classify.Prediction, replies []Reply) classify.Prediction {
	return merge(p, replies).prediction
}

// merged is a prediction in the making.
type merged struct {
	prediction classify.Prediction
	// away says that a calibrated answer says with awayFrom or more that the message
	// needs no attention, and none after it says otherwise.
	away bool
	// shown says that T1 takes the message to be worth showing.
	shown bool
	// used says that a reply counted.
	used bool
}

func merge(p classify.Prediction, replies []Reply) merged {
	m := merged{prediction: p}
	m.prediction.Priorities = maps.Clone(p.Priorities)
	last := current(replies)
	m.show(last[T1])
	m.understand(last[T2a])
	m.score(last[T2b])
	if out := &m.prediction; m.used && (out.Priority == classify.Urgent || out.Priority == classify.NeedsResponse) {
		out.Urgent = out.Urgent || out.Priority == classify.Urgent
		out.NeedsAttention, m.away = true, false
	}
	return m
}

// show takes over whether the message is worth showing. That it is not worth it
// bounds its need for attention; that it is changes no prediction.
func (m *merged) show(r Reply) {
	c, _, ok := r.choice(askShow)
	if !ok {
		return
	}
	m.used, m.shown = true, c.Code == "Y"
	if m.shown {
		return
	}
	shares := c.believed()
	m.attend(c, min(shares[0], probability(m.prediction.Attention, 0.5)))
	m.dismiss(c, shares[1])
}

// understand takes over act, category and priority.
func (m *merged) understand(r Reply) {
	out := &m.prediction
	if c, q, ok := r.choice(askAct); ok {
		m.used = true
		value, sure := chosen(q, c, string(out.Act), out.ActConfidence)
		out.Act, out.ActConfidence = classify.Act(value), sure
	}
	if c, q, ok := r.choice(askCategory); ok {
		m.used = true
		value, sure := chosen(q, c, string(out.Category), out.CategoryConfidence)
		out.Category, out.CategoryConfidence = classify.Category(value), sure
	}
	c, q, ok := r.choice(askPriority)
	if !ok {
		return
	}
	m.used = true
	shares := c.believed()
	m.prioritise(c, q, shares)
	needs := shares[q.valueIndex(string(classify.Urgent))] + shares[q.valueIndex(string(classify.NeedsResponse))]
	m.attend(c, needs)
	if c.Code == "U" || c.Code == "N" {
		out.NeedsAttention, m.away = true, false
		return
	}
	m.dismiss(c, 1-needs)
}

// prioritise takes over the priority.
func (m *merged) prioritise(c Choice, q question, shares []float64) {
	out := &m.prediction
	embedded := make([]float64, len(q.codes))
	for i, code := range q.codes {
		embedded[i] = out.Priorities[classify.Priority(code.value)]
	}
	if !isDistribution(embedded, len(q.codes)) {
		embedded = shares
	}
	said := q.index(c.Code)
	if q.codes[said].value == string(out.Priority) {
		if shares[said] < embedded[said] {
			shares = embedded
		}
	} else {
		shares = pool(embedded, shares, c.weight())
		out.Priority = classify.Priority(q.codes[top(shares)].value)
	}
	out.Priorities = map[classify.Priority]float64{}
	for i, code := range q.codes {
		out.Priorities[classify.Priority(code.value)] = shares[i]
	}
}

// score takes over how much the message needs its owner.
func (m *merged) score(r Reply) {
	c, q, ok := r.choice(askScore)
	if !ok {
		return
	}
	m.used = true
	shares := c.believed()
	high, middle, low := q.index("H"), q.index("M"), q.index("L")
	m.attend(c, shares[high]+shares[middle]/2)
	switch c.Code {
	case "H":
		m.prediction.NeedsAttention, m.away = true, false
	case "L":
		m.dismiss(c, shares[low])
	}
}

// attend takes over the probability that an answer gives for the message to need
// its owner. Where it says what was known, the surer of the two counts.
func (m *merged) attend(c Choice, said float64) {
	if !c.Calibrated {
		said = max(1-Cap, min(Cap, said))
	}
	out := &m.prediction
	was := probability(out.Attention, 0.5)
	switch {
	case was < 0.5 && said < 0.5:
		out.Attention = min(was, said)
	case was > 0.5 && said > 0.5:
		out.Attention = max(was, said)
	default:
		out.Attention = mean(was, said, c.weight())
	}
}

// dismiss takes back that the message needs attention, if the answer is
// calibrated and sure enough. Any other answer changes nothing about that.
func (m *merged) dismiss(c Choice, sure float64) {
	if c.Calibrated && sure >= awayFrom {
		m.prediction.NeedsAttention, m.away = false, true
	}
}

// believed returns the shares of an answer, none over the cap if it is not
// calibrated.
func (c Choice) believed() []float64 {
	if c.Calibrated {
		return c.Shares
	}
	return capped(c.Shares, Cap)
}

func (c Choice) weight() float64 {
	if c.Calibrated {
		return probability(c.Weight, halfWeight)
	}
	return halfWeight
}

// chosen returns one of the values of a question and how sure it is, from what
// the embedded models chose and what was answered.
func chosen(q question, c Choice, was string, sure float64) (value string, confidence float64) {
	shares, said, at := c.believed(), q.index(c.Code), q.valueIndex(was)
	sure = probability(sure, 0)
	switch at {
	case -1:
		return q.codes[said].value, shares[said]
	case said:
		return was, max(sure, shares[said])
	}
	both := pool(spread(sure, at, len(q.codes)), shares, c.weight())
	best := top(both)
	if both[at] >= both[best] {
		best = at
	}
	return q.codes[best].value, both[best]
}

// Decide returns what becomes of a message with the replies about it. Without
// any, that is what decide.Decide returns.
//
// A message is put out of sight only if it would be without models too, or if a
// calibrated answer says that it needs no attention; and never if T1 says that it
// is worth showing.
func Decide(f decide.Facts, replies []Reply) decide.Decision {
	without := decide.Decide(f)
	steps := Steps(replies)
	m := merge(f.Prediction, replies)
	if !m.used {
		without.Trace = slices.Concat(steps, without.Trace)
		return without
	}
	f.Prediction, f.Answered = m.prediction, true
	d := decide.Decide(f)
	because := ""
	switch {
	case !putsAway(d):
	case m.shown:
		because = "T1 says that it is worth showing"
	case !putsAway(without) && !m.away:
		because = "rules and embedded models alone would not put it away, and no calibrated answer is sure that it needs no attention"
	}
	if because != "" {
		f.Prediction.NeedsAttention = true
		d = decide.Decide(f)
		steps = append(steps, decide.Step{Rule: "models", To: "kept in sight", Because: because})
	}
	d.Trace = slices.Concat(steps, d.Trace)
	return d
}

func putsAway(d decide.Decision) bool {
	return d.Bucket == decide.Archived || slices.ContainsFunc(d.Wants, func(w decide.Want) bool {
		return w.Action == decide.Archive || w.Action == decide.Snooze || w.Action == decide.Trash
	})
}
