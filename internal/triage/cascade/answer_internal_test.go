package cascade

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"m1":{"s":"Y","k":"B"}}`), uint8(0))
	f.Add([]byte(`{"m2":{"k":"B","s":"N"},"m1": {"s":"Y","k":"\u0042"}}`), uint8(1))
	f.Add([]byte(`{"m1":{"s":"Y","k":"B"},"m1":{"s":"N","k":"B"}}`), uint8(1))
	f.Add([]byte(`{"m1":{"s":"Y","k":"B","k":"D"}} `), uint8(0))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		n := int(size%MaxPack) + 1
		answers, err := specOf(T1).parse(text, n)
		if err != nil {
			if err.Error() != errAnswer.Error() {
				t.Fatalf("the error %q could have text of the answer", err)
			}
			return
		}
		// A decoder finds the same codes, and there are no duplicates.
		var all map[string]map[string]string
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%q was accepted and is not JSON: %v", text, err)
		}
		want := map[string]map[string]string{}
		for i, picks := range answers {
			want[key(i)] = map[string]string{}
			for at, q := range specOf(T1).questions {
				p := picks[at]
				want[key(i)][q.key] = p.code
				if p.at >= 0 && !strings.HasPrefix(string(text[p.at:]), p.code+`"`) {
					t.Fatalf("%q: no %s stands at %d", text, p.code, p.at)
				}
			}
		}
		if diff := cmp.Diff(want, all); diff != "" || len(answers) != n {
			t.Fatalf("%q was read as something else:\n%s", text, diff)
		}
	})
}

// tokens returns an answer of these tokens.
func tokens(tops map[string][]model.Alternative, texts ...string) model.Answer {
	var a model.Answer
	for _, text := range texts {
		a.Text = append(a.Text, text...)
		a.Tokens = append(a.Tokens, model.Token{Text: text, Top: tops[text]})
	}
	return a
}

func alternatives(shares map[string]float64) []model.Alternative {
	var all []model.Alternative
	for text, share := range shares {
		all = append(all, model.Alternative{Text: text, Logprob: math.Log(share)})
	}
	return all
}

func TestShares(t *testing.T) {
	t.Parallel()
	show := specOf(T1).questions[0]
	for name, test := range map[string]struct {
		answer model.Answer
		want   []float64
	}{
		"one token": {
			tokens(map[string][]model.Alternative{"Y": alternatives(map[string]float64{"Y": .6, "N": .2})}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), []float64{.75, .25},
		},
		"with its quote": {
			tokens(map[string][]model.Alternative{`:"Y`: alternatives(map[string]float64{`:"Y`: .6, `:"N`: .2, `: "N`: .1})}, `{"m1":{"s"`, `:"Y`, `","k":"B"}}`), []float64{.75, .25},
		},
		"words of the same letter": {
			tokens(map[string][]model.Alternative{`Y`: alternatives(map[string]float64{`Y`: .4, `Yes`: .2, `No`: .2, `{`: .1})}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), []float64{.75, .25},
		},
		"a code that is not among the alternatives": {
			tokens(map[string][]model.Alternative{`Y`: alternatives(map[string]float64{`Y`: .9, `x`: .04})}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), []float64{.9 / .94, .04 / .94},
		},
		"the model wanted to write something else": {
			tokens(map[string][]model.Alternative{`Y`: alternatives(map[string]float64{`Y`: .2, `N`: .1, `I`: .7})}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), nil,
		},
		"other tokens than the text": {
			model.Answer{Text: []byte(`{"m1":{"s":"Y","k":"B"}}`), Tokens: []model.Token{{Text: "Y", Top: alternatives(map[string]float64{"Y": 1})}}}, nil,
		},
		"no numbers": {
			tokens(map[string][]model.Alternative{`Y`: {{Text: "Y", Logprob: math.NaN()}}}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), nil,
		},
		"more than all": {
			tokens(map[string][]model.Alternative{`Y`: {{Text: "Y"}, {Text: "N"}}}, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), nil,
		},
		"none": {tokens(nil, `{"m1":{"s":"`, `Y`, `","k":"B"}}`), nil},
		"written with escapes": {
			tokens(map[string][]model.Alternative{`\u0059`: alternatives(map[string]float64{"Y": 1})}, `{"m1":{"s":"`, `\u0059`, `","k":"B"}}`), nil,
		},
	} {
		answers, err := specOf(T1).parse(test.answer.Text, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, show.shares(test.answer, answers[0][0]), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	act := specOf(T2a).questions[0]
	sure := spread(0.95, 0, 7)
	for name, test := range map[string]struct {
		shares     []float64
		has        bool
		with       Calibration
		confidence float64
		calibrated bool
	}{
		"without log-probabilities":                        {nil, false, Calibration{}, Fixed, false},
		"without log-probabilities, calibrated for those":  {nil, true, Calibration{Temperature: 1, Fixed: .8}, .8, true},
		"without log-probabilities, calibrated for others": {nil, true, Calibration{Temperature: 1}, Fixed, false},
		"not calibrated":                {sure, false, Calibration{}, Cap, false},
		"not calibrated and not sure":   {spread(.4, 0, 7), false, Calibration{}, .4, false},
		"calibrated":                    {sure, true, Calibration{Temperature: 1}, .95, true},
		"calibrated, less sure than it": {sure, true, Calibration{Temperature: 2}, .640, true},
	} {
		c := act.choice("R", test.shares, test.with, test.has)
		if math.Abs(c.Confidence-test.confidence) > 1e-3 || c.Calibrated != test.calibrated || !isDistribution(c.Shares, 7) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
