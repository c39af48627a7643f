package evaluate

import "math"

// Figure is one number, with the Wilson interval of a share at 95 %.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitzero"`
	High  float64 `json:"high,omitzero"`
	// Of is the number of distinct examples of a share; 0 for other figures.
	Of int `json:"of,omitzero"`
	// Aim is the target of the figure, or 0.
	Aim float64 `json:"aim,omitzero"`
	// Published is the same figure of AMD's GAIA e-mail agent, version 0.6.0.
	Published float64 `json:"published,omitzero"`
	// Unit is empty for shares.
	Unit string `json:"unit,omitempty"`
}

// share counts right results.
type share struct{ right, of int }

func (s *share) add(right bool) {
	s.of++
	if right {
		s.right++
	}
}

// figure returns the share. Examples that were judged several times, once with
// each seed, count once for the interval.
func (s share) figure(name string, repeats int) Figure {
	n := s.of / max(1, repeats)
	f := Figure{Name: name, Of: n}
	if s.of == 0 {
		return f
	}
	f.Value = float64(s.right) / float64(s.of)
	f.Low, f.High = wilson(f.Value, float64(n))
	return f
}

// wilson returns the interval of a share of n examples at 95 %.
func wilson(p, n float64) (low, high float64) {
	const z = 1.96
	if n == 0 {
		return 0, 1
	}
	centre := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
}

// found counts the results of a yes-or-no question.
type found struct{ hit, missed, wrong, passed int }

func (f *found) add(predicted, actual bool) {
	switch {
	case predicted && actual:
		f.hit++
	case actual:
		f.missed++
	case predicted:
		f.wrong++
	default:
		f.passed++
	}
}

func (f found) recall() share    { return share{f.hit, f.hit + f.missed} }
func (f found) precision() share { return share{f.hit, f.hit + f.wrong} }
func (f found) accuracy() share {
	return share{f.hit + f.passed, f.hit + f.missed + f.wrong + f.passed}
}

func (f found) f1() float64 {
	if f.hit == 0 {
		return 0
	}
	return 2 * float64(f.hit) / float64(2*f.hit+f.missed+f.wrong)
}

// figures returns recall, precision and F1.
func (f found) figures(name string, repeats int) []Figure {
	return []Figure{
		f.recall().figure(name+" recall", repeats), f.precision().figure(name+" precision", repeats),
		{Name: name + " F1", Value: f.f1()},
	}
}

// aim sets the targets of the figures with these names.
func aim(figures []Figure, aims map[string]float64) []Figure {
	for i := range figures {
		figures[i].Aim = aims[figures[i].Name]
	}
	return figures
}
