package label

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// message is the input of a classifier.
type message struct {
	id       uuid.UUID
	text     string
	features classify.Features
}

// Match is a message that gets a label.
type Match struct {
	Message uuid.UUID `json:"message_id"`
	Label   string    `json:"label"`
	// Score is at least one half.
	Score float64 `json:"score"`
	// Because are the words of the definition that the message has, and
	// "examples" if it is like the examples; or "model" alone.
	Because []string `json:"because"`
}

// Starting values. The bias keeps a message without evidence far below one half;
// one word of the owner exceeds it, as do most terms of a description.
const (
	bias        = -2.5
	wordScore   = 3.5
	termScore   = 4.0
	leastTerms  = 0.6
	maxTerms    = 8
	unlike      = -1.5
	steps       = 30
	rate        = 0.1
	otherWeight = 0.45
	spread      = 3
	forExamples = "examples"
)

// classifier matches one label: the words and the terms of its definition, and a
// linear model over the hashed features of its examples.
type classifier struct {
	name    string
	words   [][]string
	terms   []string
	given   []string
	weights map[uint32]float64
	offset  float64
}

// newClassifier returns the classifier of a definition. others are messages of the
// account which are no examples: they show which features are common. It is
// deterministic.
func newClassifier(name string, d Definition, yes, no, others []classify.Features) *classifier {
	c := &classifier{name: name, given: d.Words, terms: terms(d.Description)}
	for _, w := range d.Words {
		c.words = append(c.words, split(w))
	}
	if len(yes)+len(no) > 0 {
		c.train(yes, no, others)
	}
	return c
}

// sample is an example with its weight.
type sample struct {
	features classify.Features
	yes      bool
	weight   float64
}

// train fits the linear model by steps of gradient descent. The examples of each
// side have the same weight together.
func (c *classifier) train(yes, no, others []classify.Features) {
	c.weights = map[uint32]float64{}
	var all []sample
	add := func(from []classify.Features, yes bool, weight float64) {
		for _, f := range from {
			all = append(all, sample{f, yes, weight * min(1, spread/float64(len(from)))})
		}
	}
	add(yes, true, 1)
	add(no, false, 1)
	if len(yes) > 0 {
		add(others, false, otherWeight)
	}
	for range steps {
		for _, s := range all {
			p := sigmoid(c.linear(s.features))
			if s.yes {
				p--
			}
			step := rate * s.weight * p
			c.offset -= step / spread
			for _, e := range s.features.Content {
				c.weights[e.Bucket] -= step * float64(e.Value)
			}
			for _, e := range s.features.Sender {
				c.weights[e.Bucket] -= step * float64(e.Value)
			}
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// linear returns the score of the examples.
func (c *classifier) linear(f classify.Features) float64 {
	sum := c.offset
	for _, e := range f.Content {
		sum += c.weights[e.Bucket] * float64(e.Value)
	}
	for _, e := range f.Sender {
		sum += c.weights[e.Bucket] * float64(e.Value)
	}
	return sum
}

// match returns the match of a message, and whether it gets the label.
func (c *classifier) match(m message) (Match, bool) {
	found := Match{Message: m.id, Label: c.name, Because: []string{}}
	score, words := bias, split(m.text)
	for i, w := range c.words {
		if contains(words, w) {
			if len(found.Because) == 0 {
				score += wordScore
			}
			found.Because = append(found.Because, c.given[i])
		}
	}
	if len(c.terms) > 0 {
		var have []string
		for _, t := range c.terms {
			if slices.ContainsFunc(words, func(w string) bool { return sameStem(w, t) }) {
				have = append(have, t)
			}
		}
		if share := float64(len(have)) / float64(len(c.terms)); share >= leastTerms {
			score += termScore * share
			found.Because = append(found.Because, have...)
		}
	}
	if c.weights != nil {
		switch like := c.linear(m.features); {
		case like > 0:
			score += like - bias
			found.Because = append(found.Because, forExamples)
		case like < unlike: // like the examples against it, despite its words
			score += like - unlike
		}
	}
	found.Because = slices.Compact(found.Because)
	found.Score = sigmoid(score)
	return found, found.Score >= 0.5
}

// rejects reports whether a message is like the examples against the label.
func (c *classifier) rejects(m message) bool {
	return c.weights != nil && c.linear(m.features) < unlike
}

// split returns the words of a text in lower case. A character of a script without
// spaces is a word.
func split(text string) []string {
	var words []string
	begin := -1
	for i, r := range text {
		alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		inside := !alone && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
		if !inside && begin >= 0 {
			words = append(words, strings.ToLower(text[begin:i]))
			begin = -1
		}
		switch {
		case alone:
			words = append(words, string(r))
		case inside && begin < 0:
			begin = i
		}
	}
	if begin >= 0 {
		words = append(words, strings.ToLower(text[begin:]))
	}
	return words
}

// contains reports whether a phrase stands in a text.
func contains(words, phrase []string) bool {
	for i := 0; i+len(phrase) <= len(words); i++ {
		if slices.Equal(words[i:i+len(phrase)], phrase) {
			return true
		}
	}
	return false
}

// sameStem reports whether two words have the same beginning, as investor and
// investors have.
func sameStem(a, b string) bool {
	const stem, ending = 4, 3
	if a == b {
		return true
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= stem && len(b)-len(a) <= ending && strings.HasPrefix(b, a)
}

// terms returns the words of a description that may distinguish messages: at most
// eight, without short and common ones.
func terms(description string) []string {
	common := " about all and any are because been but can could emails email everything for from had has have her him his how into its mail mails message messages not our out over she should some something than that the their them then there these they this those was were what when where which who will with would you your der die das und von mit für eine einen über alle les des une pour avec dans sur los las una para con por sobre "
	found := map[string]int{}
	for i, w := range split(description) {
		if _, seen := found[w]; !seen && len(w) > 2 && !strings.Contains(common, " "+w+" ") {
			found[w] = i
		}
	}
	all := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return cmp.Compare(found[a], found[b]) })
	return all[:min(len(all), maxTerms)]
}
