package classify

import "math"

// Descent configures the training of a head.
type Descent struct {
	// Rate is the step of AdaGrad, Decay the weight of the squared weights.
	Rate, Decay float64
	Epochs      int
}

// row is an example for one head.
type row struct {
	features []Entry
	// target is the distribution over classes to learn; for a head with one
	// output, its only element is the probability of yes.
	target []float32
	weight float32
}

// linear holds the weights of a head, with one bias per output. Only buckets
// that occur in training have a place among the weights.
type linear struct {
	outputs int
	// places maps buckets to places, counted from 1; 0 means none.
	places  []int32
	weights []float32
	bias    []float32
}

// newLinear returns weights of zero for the features of the rows.
func newLinear(rows []row, outputs int) *linear {
	l := &linear{outputs: outputs, places: make([]int32, buckets), bias: make([]float32, outputs)}
	used := int32(0)
	for _, r := range rows {
		for _, e := range r.features {
			if l.places[e.Bucket] == 0 {
				used++
				l.places[e.Bucket] = used
			}
		}
	}
	l.weights = make([]float32, int(used)*outputs)
	return l
}

// score writes the scores of the features.
func (l *linear) score(features []Entry, scores []float64) {
	for o := range scores {
		scores[o] = float64(l.bias[o])
	}
	for _, e := range features {
		place := int(l.places[e.Bucket])
		if place == 0 {
			continue
		}
		at := (place - 1) * l.outputs
		for o, w := range l.weights[at : at+l.outputs] {
			scores[o] += float64(float64(w) * float64(e.Value))
		}
	}
}

// fit trains a head by AdaGrad. The order of the rows depends only on the seed.
// The weights are the mean of those after the second half of the epochs.
func fit(rows []row, outputs int, how Descent, seed uint64) *linear {
	l := newLinear(rows, outputs)
	if len(rows) == 0 {
		return l
	}
	d := descent{linear: l, how: how, squares: make([]float32, len(l.weights)), biasSquares: make([]float32, outputs)}
	mean := make([]float32, len(l.weights))
	meanBias := make([]float32, outputs)
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	taken := float32(0)
	for epoch := range how.Epochs {
		shuffle(order, seed+uint64(epoch))
		for _, i := range order {
			d.step(rows[i])
		}
		if epoch*2 < how.Epochs-1 {
			continue
		}
		taken++
		for i, w := range l.weights {
			mean[i] += w
		}
		for o, b := range l.bias {
			meanBias[o] += b
		}
	}
	for i, w := range mean {
		l.weights[i] = w / taken
	}
	for o, b := range meanBias {
		l.bias[o] = b / taken
	}
	return l
}

// shuffle permutes the order by its own random numbers, which no release of Go
// changes.
func shuffle(order []int, seed uint64) {
	state := mix(seed + 0x9e3779b97f4a7c15)
	for i := len(order) - 1; i > 0; i-- {
		state += 0x9e3779b97f4a7c15
		j := int(mix(state) % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
}

// descent is a head in training.
type descent struct {
	*linear
	how                  Descent
	squares, biasSquares []float32
	scores               [maxOutputs]float64
}

// step moves the weights towards a row.
func (d *descent) step(r row) {
	p := d.scores[:d.outputs]
	d.score(r.features, p)
	softmax(p)
	for o := range p {
		p[o] = float64((p[o] - float64(r.target[o])) * float64(r.weight))
		d.biasSquares[o], d.bias[o] = move(d.bias[o], d.biasSquares[o], p[o], d.how.Rate)
	}
	for _, e := range r.features {
		at := (int(d.places[e.Bucket]) - 1) * d.outputs
		for o, g := range p {
			w := d.weights[at+o]
			gradient := float64(g*float64(e.Value)) + float64(d.how.Decay*float64(w))
			d.squares[at+o], d.weights[at+o] = move(w, d.squares[at+o], gradient, d.how.Rate)
		}
	}
}

// move returns the sum of squares and the weight after one step of AdaGrad.
func move(weight, squares float32, gradient, rate float64) (sum, moved float32) {
	total := float64(squares) + float64(gradient*gradient)
	if total == 0 {
		return squares, weight
	}
	return float32(total), float32(float64(weight) - float64(rate*gradient)/math.Sqrt(total+1e-8))
}
