package classify

import (
	"cmp"
	"math"
	"sync"

	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// training is a training run over a set.
type training struct {
	config  Config
	samples []*sample
	results map[Head]*result
}

// result is a trained head with its results on held-out examples.
type result struct {
	linear      *linear
	outcomes    []outcome
	temperature float64
	rows        int
	// best is the cut of a head with one output that maximises F1.
	best float64
	// classes counts the examples by their label.
	classes map[string]int
}

// run trains the head of requests first, whose answers the others use, then the
// others concurrently. It waits for all of them.
func (t *training) run() {
	t.results[HeadRequest] = t.head(HeadRequest)
	var wg sync.WaitGroup
	rest := heads()
	results := make([]*result, len(rest))
	for i, h := range rest {
		if h != HeadRequest {
			wg.Go(func() { results[i] = t.head(h) })
		}
	}
	wg.Wait()
	for i, h := range rest {
		if results[i] != nil {
			t.results[h] = results[i]
		}
	}
}

// head trains one head on all rows, and once without each fold.
func (t *training) head(h Head) *result {
	rows, labels, fold := t.rows(h)
	how := t.config.Mail
	if h == HeadRequest {
		how = t.config.Sentence
	}
	out := &result{rows: len(rows), classes: map[string]int{}}
	for _, class := range labels {
		out.classes[h.Classes()[class]]++
	}
	out.linear = fit(rows, h.outputs(), how, t.config.Seed)
	for held := range heldFolds(len(rows)) {
		var kept []row
		for i, r := range rows {
			if fold[i] != held {
				kept = append(kept, r)
			}
		}
		l := fit(kept, h.outputs(), how, t.config.Seed)
		for i, r := range rows {
			if fold[i] == held {
				scores := make([]float64, h.outputs())
				l.score(r.features, scores)
				out.outcomes = append(out.outcomes, outcome{scores, labels[i], float64(r.weight)})
			}
		}
	}
	out.temperature = calibrate(out.outcomes)
	out.best = out.bestCut()
	return out
}

// heldFolds returns how many folds are held out in turn. One suffices for
// calibration with thousands of rows.
func heldFolds(rows int) int {
	if rows > 2500 {
		return 1
	}
	return folds
}

// rows returns the examples with a label for the head, their labels, and their
// folds.
func (t *training) rows(h Head) (rows []row, labels, fold []int) {
	for _, s := range t.samples {
		class, weight := label(h, s.example)
		if class < 0 {
			continue
		}
		rows = append(rows, row{features: t.features(h, s), target: t.target(h, class), weight: float32(s.weight * weight)})
		labels = append(labels, class)
		fold = append(fold, int(mix(hashString(s.example.ID))%folds))
	}
	balance(rows, labels, len(h.Classes()))
	return rows, labels, fold
}

// balance raises the weight of rare classes by the root of their rarity.
func balance(rows []row, labels []int, classes int) {
	mass := make([]float64, classes)
	total := 0.0
	for i, r := range rows {
		mass[labels[i]] += float64(r.weight)
		total += float64(r.weight)
	}
	for i, class := range labels {
		if mass[class] > 0 {
			rows[i].weight *= float32(math.Sqrt(total / float64(mass[class]*float64(classes))))
		}
	}
}

// label returns the class of an example for a head and its weight, or -1.
func label(h Head, e corpus.Example) (class int, weight float64) {
	l := e.Labels
	given := func(actual *bool) int {
		if actual == nil || e.Raw == nil {
			return -1
		}
		return h.index(yesNo(*actual))
	}
	switch h {
	case HeadAct:
		return h.index(l.Act), 1
	case HeadCategory:
		return h.index(l.Category), 1
	case HeadPriority:
		return h.index(l.Priority), 1
	case HeadAttention:
		if l.Priority == "" {
			return -1, 0
		}
		return h.index(yesNo(l.Priority == string(Urgent) || l.Priority == string(NeedsResponse))), 1
	case HeadUnwanted:
		return given(l.Unwanted), 1
	case HeadPhishing:
		return given(l.Phishing), 1
	case HeadRequest:
		if l.Request == nil || e.Sentence == "" {
			return -1, 0
		}
		return h.index(yesNo(*l.Request)), 1
	}
	return -1, 0
}

// target returns the distribution to learn for a class.
func (t *training) target(h Head, class int) []float32 {
	if h.outputs() == 1 {
		return []float32{float32(class)}
	}
	out := make([]float32, h.outputs())
	out[class] = 1
	if h != HeadPriority || Priority(h.Classes()[class]) == Personal {
		return out
	}
	for _, next := range []int{class - 1, class + 1} {
		if next >= 0 && next < len(out)-1 {
			out[next] = float32(t.config.Soft)
			out[class] -= float32(t.config.Soft)
		}
	}
	return out
}

// features returns the features of a sample that a head uses.
func (t *training) features(h Head, s *sample) []Entry {
	if h == HeadRequest {
		return s.sentences[0]
	}
	if !h.asks() {
		return s.content
	}
	request := t.results[HeadRequest]
	highest, many := 0.0, 0
	for _, sentence := range s.sentences {
		var p [1]float64
		request.linear.score(sentence, p[:])
		p[0] /= request.temperature
		softmax(p[:])
		highest = max(highest, p[0])
		if p[0] >= request.best {
			many++
		}
	}
	return append(s.content[:len(s.content):len(s.content)], asking(highest, many, t.config.Scale)...)
}

// model quantises the heads into one table.
func (t *training) model(v vocabulary) (*Model, error) {
	m := &Model{vocabulary: v, parts: map[Head]part{}, cuts: t.cuts()}
	for _, h := range heads() {
		m.parts[h] = part{Offset: m.stride}
		m.stride += h.outputs()
	}
	m.table = make([]int8, buckets*m.stride)
	for _, h := range heads() {
		m.parts[h] = m.quantise(h, t.results[h])
	}
	return m, m.setDigest()
}

// quantise writes the weights of a head to the table, in 127 steps on each side.
func (m *Model) quantise(h Head, r *result) part {
	p := m.parts[h]
	p.Temperature, p.Examples = r.temperature, r.rows
	largest := float32(0)
	for _, w := range r.linear.weights {
		largest = max(largest, w, -w)
	}
	largest = cmp.Or(largest, 1)
	p.Unit = float64(largest) / 127
	n := r.linear.outputs
	for bucket, place := range r.linear.places {
		if place == 0 {
			continue
		}
		for o, w := range r.linear.weights[int(place-1)*n : int(place)*n] {
			m.table[bucket*m.stride+p.Offset+o] = int8(math.Round(float64(w) / p.Unit))
		}
	}
	for _, b := range r.linear.bias {
		p.Bias = append(p.Bias, float64(b))
	}
	return p
}

// cuts chooses the cuts on held-out examples.
func (t *training) cuts() Cuts {
	urgent := HeadPriority.index(string(Urgent))
	return Cuts{
		Urgent:    t.results[HeadPriority].cut(urgent, t.config.UrgentRecall),
		Attention: t.results[HeadAttention].cut(1, t.config.AttentionRecall),
		Request:   t.results[HeadRequest].best,
		Near:      t.config.Near,
	}
}

// cut returns the cut that finds the wanted share of a class.
func (r *result) cut(class int, recall float64) float64 {
	var positives, all []float64
	var p [maxOutputs]float64
	for _, o := range r.outcomes {
		q := probability(o.temper(r.temperature, p[:]), class)
		all = append(all, q)
		if o.class == class {
			positives = append(positives, q)
		}
	}
	return cutFor(positives, all, recall)
}

// bestCut returns the cut of a head with one output that maximises F1 on
// held-out examples.
func (r *result) bestCut() float64 {
	best, highest := 0.5, 0.0
	if r.linear.outputs > 1 {
		return best
	}
	for step := range 13 {
		cut := float64(30+step*3) / 100
		var hit, predicted, actual float64
		var p [1]float64
		for _, o := range r.outcomes {
			yes := o.temper(r.temperature, p[:])[0] >= cut
			if yes && o.class == 1 {
				hit++
			}
			if yes {
				predicted++
			}
			actual += float64(o.class)
		}
		if predicted+actual > 0 && 2*hit/(predicted+actual) > highest {
			best, highest = cut, 2*hit/(predicted+actual)
		}
	}
	return best
}
