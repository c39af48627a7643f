package cascade

import (
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// awayFrom is the confidence from which a calibrated answer alone may decide
// that a message needs no attention.
const awayFrom = 0.8

// Merge returns the prediction of the embedded models merged with the replies.
//
// If a model agrees, the higher confidence counts; if it differs, the
// weighted mean. So no confidence exceeds the higher of the two, and an answer
// without calibration has at most Cap. Replies do not change the prediction of
// unwanted mail and phishing.
func Merge(p classify.Prediction, replies []Reply) classify.Prediction {
	return merge(p, replies).prediction
}

// merged is a prediction in progress.
type merged struct {
	prediction classify.Prediction
	// away reports whether a calibrated answer finds with awayFrom or more that
	// the message needs no attention, and no later answer contradicts it.
	away bool
	// shown reports whether T1 finds the message worth showing.
	shown bool
	// used reports whether a reply counted.
	used bool
}

func merge(p classify.Prediction, replies []Reply) merged {
	m := merged{prediction: p}
	m.prediction.Priorities = maps.Clone(p.Priorities)
	last := current(replies)
	m.show(last[T1])
	m.understand(last[T2a])
	m.score(last[T2b])
	out := &m.prediction
	if m.used && (out.Priority == classify.Urgent || out.Priority == classify.NeedsResponse) {
		out.Urgent = out.Urgent || out.Priority == classify.Urgent
		out.NeedsAttention, m.away = true, false
	}
	// An answer may add to what needs attention and take nothing from it.
	out.NeedsAttention, out.Urgent = out.NeedsAttention || p.NeedsAttention, out.Urgent || p.Urgent
	m.away = m.away && !p.NeedsAttention
	return m
}

// show applies T1's answer. "Not worth showing" limits the need for attention;
// "worth showing" changes no prediction.
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

// understand applies act, category and priority.
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

// prioritise applies the priority.
func (m *merged) prioritise(c Choice, q question, shares []float64) {
	out := &m.prediction
	embedded := make([]float64, len(q.codes))
	for i, code := range q.codes {
		embedded[i] = out.Priorities[classify.Priority(code.value)]
	}
	if !isDistribution(embedded, len(q.codes)) {
		embedded = shares
	}
	answer := q.index(c.Code)
	if q.codes[answer].value == string(out.Priority) {
		if shares[answer] < embedded[answer] {
			shares = embedded
		}
	} else {
		shares = pool(embedded, shares, c.weight())
		out.Priority = classify.Priority(q.codes[classify.Largest(shares)].value)
	}
	out.Priorities = map[classify.Priority]float64{}
	for i, code := range q.codes {
		out.Priorities[classify.Priority(code.value)] = shares[i]
	}
}

// score applies the need for attention.
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

// attend applies the probability of needing attention. If it agrees with the
// prediction, the higher confidence counts.
func (m *merged) attend(c Choice, answer float64) {
	if !c.Calibrated {
		answer = max(1-Cap, min(Cap, answer))
	}
	out := &m.prediction
	was := probability(out.Attention, 0.5)
	switch {
	case was < 0.5 && answer < 0.5:
		out.Attention = min(was, answer)
	case was > 0.5 && answer > 0.5:
		out.Attention = max(was, answer)
	default:
		out.Attention = mean(was, answer, c.weight())
	}
}

// dismiss notes a calibrated answer that is confident enough that the message
// needs no attention.
func (m *merged) dismiss(c Choice, sure float64) {
	if c.Calibrated && sure >= awayFrom {
		m.away = true
	}
}

// believed returns the shares of an answer, capped if it is not calibrated.
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

// chosen merges the embedded models' choice of a value with the answer.
func chosen(q question, c Choice, was string, sure float64) (value string, confidence float64) {
	shares, answer, at := c.believed(), q.index(c.Code), q.valueIndex(was)
	sure = probability(sure, 0)
	switch at {
	case -1:
		return q.codes[answer].value, shares[answer]
	case answer:
		return was, max(sure, shares[answer])
	}
	both := pool(spread(sure, at, len(q.codes)), shares, c.weight())
	best := classify.Largest(both)
	if both[at] >= both[best] {
		best = at
	}
	return q.codes[best].value, both[best]
}

// Decide returns the decision about a message with its replies. Without any, it
// is decide.Decide.
//
// A message is archived only if it would be without models too, or if a
// calibrated answer finds that it needs no attention; and never if T1 finds it
// worth showing. A message that waits for its owner without models waits with
// them: answers only add to these messages.
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
		because = "T1 finds it worth showing"
	case !putsAway(without) && !m.away:
		because = "rules and embedded models alone would not archive it, and no calibrated answer finds that it needs no attention"
	}
	if because != "" {
		f.Prediction.NeedsAttention = true
		d = decide.Decide(f)
		steps = append(steps, decide.Step{Rule: "models", To: "kept in sight", Because: because})
	}
	if without.Bucket.NeedsOwner() && !d.Bucket.NeedsOwner() {
		d = without
		steps = append(steps, decide.Step{Rule: "models", To: "waits for its owner", Because: "it would without models"})
	}
	d.Trace = slices.Concat(steps, d.Trace)
	return d
}

func putsAway(d decide.Decision) bool {
	return d.Bucket == decide.Archived || slices.ContainsFunc(d.Wants, func(w decide.Want) bool {
		return w.Action == decide.Archive || w.Action == decide.Snooze || w.Action == decide.Trash
	})
}
