package classify

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MaxCorrections limits the corrections of an account; the newest count.
const MaxCorrections = 5000

// Correction is a correction by an account's owner.
type Correction struct {
	// Sequence orders corrections; it is unique within an account.
	Sequence int64
	Head     Head
	Label    string
	Features Features
}

// Corrected is a model with the corrections of one account. It depends only on
// these corrections: to remove one, build it without that one.
type Corrected struct {
	base     *Model
	overlays map[Head]*overlay
	applied  int
}

// Corrected replays corrections on top of the model.
func (m *Model) Corrected(corrections []Correction) (*Corrected, error) {
	sorted := slices.SortedFunc(slices.Values(corrections), func(a, b Correction) int { return cmp.Compare(a.Sequence, b.Sequence) })
	c := &Corrected{base: m, overlays: map[Head]*overlay{}}
	for _, correction := range sorted[max(0, len(sorted)-MaxCorrections):] {
		if err := c.apply(correction); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Predict returns the prediction for features, with the corrections.
func (c *Corrected) Predict(f Features) Prediction { return c.base.predict(f, c) }

func (c *Corrected) apply(correction Correction) error {
	h := correction.Head
	class := h.index(correction.Label)
	if class < 0 || h == HeadRequest {
		return fmt.Errorf("correction %d: label %q cannot be a correction of %q", correction.Sequence, correction.Label, h)
	}
	c.learn(h, class, correction.Features)
	if h == HeadPriority {
		needs := Priority(correction.Label) == Urgent || Priority(correction.Label) == NeedsResponse
		c.learn(HeadAttention, HeadAttention.index(yesNo(needs)), correction.Features)
	}
	c.applied++
	return nil
}

func yesNo(holds bool) string {
	if holds {
		return Yes
	}
	return No
}

// A correction moves the weights until the answer is more likely than not by
// some margin, or for correctionSteps.
const (
	correctedEnough = 0.65
	correctionSteps = 12
	correctionRate  = 0.6
)

// learn moves the overlay of a head towards a class.
func (c *Corrected) learn(h Head, class int, f Features) {
	o := c.overlays[h]
	if o == nil {
		o = newOverlay(h.outputs())
		c.overlays[h] = o
	}
	var scores [maxOutputs]float64
	p := scores[:o.outputs]
	for range correctionSteps {
		c.base.probabilities(h, f, o, p)
		if probability(p, class) >= correctedEnough {
			return
		}
		o.step(f, p, class)
	}
}

// of returns the overlay of a head, or nil.
func (c *Corrected) of(h Head) *overlay {
	if c == nil {
		return nil
	}
	return c.overlays[h]
}

func (c *Corrected) count() int {
	if c == nil {
		return 0
	}
	return c.applied
}

// overlayBuckets is a power of two that keeps an account's corrections of a
// head below three megabytes.
const overlayBuckets = 1 << 15

// overlay holds the corrections' additions to the scores of a head.
type overlay struct {
	outputs          int
	weights, squares []float32
}

func newOverlay(outputs int) *overlay {
	return &overlay{
		outputs: outputs,
		weights: make([]float32, overlayBuckets*outputs), squares: make([]float32, overlayBuckets*outputs),
	}
}

// contentLength is the length to which the content of a message is scaled in
// corrections, where each feature of the sender counts 1: a correction is
// mostly about the sender, and less about similar messages.
const contentLength = 0.7

// correctable calls each with every feature that corrections use.
func (f Features) correctable(each func(bucket uint32, value float64)) {
	squares := 0.0
	for _, e := range f.Content {
		squares += float64(float64(e.Value) * float64(e.Value))
	}
	scale := contentLength / math.Sqrt(max(squares, 1e-9))
	for _, e := range f.Content {
		each(e.Bucket%overlayBuckets, float64(scale*float64(e.Value)))
	}
	for _, e := range f.Sender {
		each(e.Bucket%overlayBuckets, float64(e.Value))
	}
}

// addTo adds the corrections to the scores.
func (o *overlay) addTo(f Features, scores []float64) {
	f.correctable(func(bucket uint32, value float64) {
		at := int(bucket) * o.outputs
		for i := range scores {
			scores[i] += float64(float64(o.weights[at+i]) * value)
		}
	})
}

// step moves the weights of the features towards a class.
func (o *overlay) step(f Features, p []float64, class int) {
	for i := range p {
		if i == class || len(p) == 1 && class == 1 {
			p[i]--
		}
	}
	f.correctable(func(bucket uint32, value float64) {
		for i, g := range p {
			o.move(int(bucket)*o.outputs+i, float64(g*value))
		}
	})
}

func (o *overlay) move(at int, gradient float64) {
	squares := float64(o.squares[at]) + float64(gradient*gradient)
	o.squares[at] = float32(squares)
	// The sum starts at one, so that a single correction moves a common word
	// little and the sender much.
	o.weights[at] = float32(float64(o.weights[at]) - float64(correctionRate*gradient)/math.Sqrt(1+squares))
}
