package classify

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Model is a set of heads with their weights. It is immutable and safe for
// concurrent use.
type Model struct {
	vocabulary vocabulary
	digest     string
	// table holds the weights of all heads, bucket after bucket, as steps of
	// the head's unit.
	table  []int8
	stride int
	parts  map[Head]part
	cuts   Cuts
}

// part describes the place and the scale of a head's weights.
type part struct {
	Offset      int       `json:"offset"`
	Unit        float64   `json:"unit"`
	Bias        []float64 `json:"bias"`
	Temperature float64   `json:"temperature"`
	// Examples is the number of training examples; a head without any predicts
	// nothing.
	Examples int `json:"examples"`
}

// Cuts are the thresholds of probabilities.
type Cuts struct {
	// Urgent applies to the probability of Urgent, Attention to that of
	// attention.
	Urgent    float64 `json:"urgent"`
	Attention float64 `json:"attention"`
	// Request applies to the probability of a request in a sentence.
	Request float64 `json:"request"`
	// Near is the share with which neighbours on the ladder of priorities
	// count.
	Near float64 `json:"near"`
}

// Digest returns the digest of the weights.
func (m *Model) Digest() string { return m.digest }

// Features returns the features of a message.
func (m *Model) Features(msg *message.Message, about signal.Context, found signal.Result) Features {
	c := m.vocabulary.content(msg, about, found)
	request, many := m.requests(msg)
	f := Features{Content: c.out, Sender: identity(msg), Request: request}
	f.Asking = asking(request, many, m.vocabulary.scale)
	return f
}

// asking returns the features of the requests in a message.
func asking(highest float64, many int, scale Scale) []Entry {
	c := &collector{}
	level(c, "request", steps(int(highest*100), 20, 35, 50, 65, 80, 90))
	level(c, "requests", steps(many, 0, 1, 3))
	c.flushEach(float32(scale.Fact))
	return c.out
}

// requests returns the highest probability of a request in any sentence, and
// the number of sentences above the cut.
func (m *Model) requests(msg *message.Message) (highest float64, many int) {
	c := &collector{}
	for sentence := range sentences(msg.Body) {
		p := m.requestOf(c, sentence)
		highest = max(highest, p)
		if p >= m.cuts.Request {
			many++
		}
	}
	return max(highest, m.requestOf(c, msg.Subject)), many
}

func (m *Model) requestOf(c *collector, sentence string) float64 {
	var p [1]float64
	m.probabilities(HeadRequest, Features{Content: m.vocabulary.sentence(c, sentence)}, nil, p[:])
	return p[0]
}

// RequestIn returns the probability that a sentence asks for or proposes
// something.
func (m *Model) RequestIn(sentence string) float64 { return m.requestOf(&collector{}, sentence) }

// Requests reports whether a sentence asks for or proposes something, which
// means that the probability reaches the cut.
func (m *Model) Requests(sentence string) bool { return m.RequestIn(sentence) >= m.cuts.Request }

// identity returns the features of the sender: the address, the domain, and the
// list.
func identity(msg *message.Message) []Entry {
	c := &collector{}
	if len(msg.From) > 0 {
		c.add(spaceSender, hashString("address "+msg.From[0].Addr))
		c.add(spaceSender, hashString("domain "+corpus.Domain(msg.From[0].Addr)))
	}
	for _, f := range msg.Fields {
		if strings.EqualFold(f.Name, "List-Id") {
			c.add(spaceSender, hashString("list "+f.Value))
		}
	}
	c.flushEach(1)
	return c.out
}

// probabilities writes the probabilities of one head. For an untrained head
// they are uniform.
func (m *Model) probabilities(h Head, f Features, more *overlay, p []float64) {
	part := m.parts[h]
	var sums [maxOutputs]float64
	m.addSums(part, f.Content, sums[:len(p)])
	if h.asks() {
		m.addSums(part, f.Asking, sums[:len(p)])
	}
	for o := range p {
		p[o] = (part.Bias[o] + float64(sums[o]*part.Unit)) / part.Temperature
	}
	if more != nil {
		more.addTo(f, p)
	}
	softmax(p)
}

// addSums adds the weights of the features for one head, in its units.
func (m *Model) addSums(part part, features []Entry, sums []float64) {
	for _, e := range features {
		at := int(e.Bucket)*m.stride + part.Offset
		for o, w := range m.table[at : at+len(sums)] {
			sums[o] += float64(float64(w) * float64(e.Value))
		}
	}
}

// Predict returns the prediction for features.
func (m *Model) Predict(f Features) Prediction { return m.predict(f, nil) }

func (m *Model) predict(f Features, more *Corrected) Prediction {
	var p [maxOutputs]float64
	answers := func(h Head) []float64 {
		out := p[:h.outputs()]
		m.probabilities(h, f, more.of(h), out)
		return out
	}
	out := Prediction{Model: m.digest, Request: f.Request, Corrections: more.count(), Priorities: make(map[Priority]float64, 5)}
	act := answers(HeadAct)
	best := Largest(act)
	out.Act, out.ActConfidence = Act(HeadAct.Classes()[best]), act[best]
	category := answers(HeadCategory)
	best = Largest(category)
	out.Category, out.CategoryConfidence = Category(HeadCategory.Classes()[best]), category[best]
	priorities := answers(HeadPriority)
	classes := HeadPriority.Classes()
	for i, q := range priorities {
		out.Priorities[Priority(classes[i])] = q
	}
	out.Priority = Priority(classes[decide(priorities, m.cuts.Near)])
	out.Urgent = out.Priorities[Urgent] >= m.cuts.Urgent
	out.Attention = answers(HeadAttention)[0]
	out.NeedsAttention = out.Attention >= m.cuts.Attention || out.Urgent || out.Priority == Urgent || out.Priority == NeedsResponse
	out.Unwanted = answers(HeadUnwanted)[0]
	out.Phishing = answers(HeadPhishing)[0]
	return out
}

// Largest returns the index of the largest number, the first of equal ones.
func Largest(p []float64) int {
	best := 0
	for i, q := range p {
		if q > p[best] {
			best = i
		}
	}
	return best
}
