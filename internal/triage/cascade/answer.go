package cascade

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// errAnswer is the error for an answer that does not match its schema. It does
// not contain the answer, which is text that a sender may have chosen.
var errAnswer = errors.New("the answer does not match its schema")

// picked is a code in an answer and its offset.
type picked struct {
	code string
	at   int
}

// parse parses an answer about n messages into the codes of each question. It
// rejects missing, duplicate and additional names.
func (s spec) parse(text []byte, n int) ([][]picked, error) {
	r := reader{decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	answers := make([][]picked, n)
	err := r.object(n, key, func(i int) error {
		answers[i] = make([]picked, len(s.questions))
		return r.object(len(s.questions), func(q int) string { return s.questions[q].key }, func(q int) error {
			one, err := r.pick(s.questions[q])
			answers[i][q] = one
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errAnswer
	}
	return answers, nil
}

// reader reads an answer token by token: decoding into a map would accept a
// duplicate name.
type reader struct {
	decoder *json.Decoder
	text    []byte
}

// object reads an object with exactly the n names, each once, in any order.
func (r reader) object(n int, name func(int) string, value func(int) error) error {
	if err := r.delimiter('{'); err != nil {
		return err
	}
	seen := make([]bool, n)
	for range n {
		token, err := r.decoder.Token()
		if err != nil {
			return errAnswer
		}
		at := -1
		for i := range n {
			if token == name(i) {
				at = i
			}
		}
		if at < 0 || seen[at] {
			return errAnswer
		}
		seen[at] = true
		if err := value(at); err != nil {
			return err
		}
	}
	return r.delimiter('}')
}

func (r reader) delimiter(want json.Delim) error {
	if token, err := r.decoder.Token(); err != nil || token != want {
		return errAnswer
	}
	return nil
}

// pick reads one of the codes of a question.
func (r reader) pick(q question) (picked, error) {
	token, err := r.decoder.Token()
	code, ok := token.(string)
	if err != nil || !ok || q.index(code) < 0 {
		return picked{}, errAnswer
	}
	// A code with escapes has no usable offset.
	at := int(r.decoder.InputOffset()) - 1 - len(code)
	if at < 0 || !bytes.HasPrefix(r.text[at:], []byte(code)) {
		at = -1
	}
	return picked{code, at}, nil
}

// minMass is the least share of the probability that the codes of a question
// must have together. Below that, the model would have written something else,
// and the shares are no measure of confidence.
const minMass = 0.5

// shares returns the probabilities of the codes of a question at the deciding
// token. It returns nil without log-probabilities.
//
// Log-probabilities are those before the schema was applied, so they are
// normalised over the codes. A code that is not among the alternatives gets the
// share of the least likely one.
func (q question) shares(a model.Answer, one picked) []float64 {
	token, prefix, ok := deciding(a, one.at)
	if !ok {
		return nil
	}
	shares, seen := make([]float64, len(q.codes)), make([]bool, len(q.codes))
	alternatives := token.Top
	if len(alternatives) == 0 {
		return nil
	}
	least, mass := math.Inf(1), 0.0
	for _, alternative := range alternatives {
		p := math.Exp(alternative.Logprob)
		if !(p >= 0 && p <= 1.001) {
			return nil
		}
		least = min(least, p)
		letter, ok := strings.CutPrefix(alternative.Text, prefix)
		if !ok || letter == "" {
			continue
		}
		for i, code := range q.codes {
			if code.code[0] == letter[0] {
				shares[i] += p
				mass += p
				seen[i] = true
			}
		}
	}
	if mass < minMass || mass > 1.01 || !seen[q.index(one.code)] {
		return nil
	}
	total := 0.0
	for i := range shares {
		if !seen[i] {
			shares[i] = min(least, (1-min(mass, 1))/float64(len(shares)))
		}
		total += shares[i]
	}
	for i := range shares {
		shares[i] /= total
	}
	return shares
}

// deciding returns the token with the first letter of a code, and the text
// before it in the token.
func deciding(a model.Answer, at int) (token model.Token, prefix string, ok bool) {
	if at < 0 || len(a.Tokens) == 0 {
		return token, "", false
	}
	var written strings.Builder
	for _, t := range a.Tokens {
		written.WriteString(t.Text)
	}
	// Some servers trim their answers.
	begin := strings.Index(written.String(), string(a.Text))
	if begin < 0 {
		return token, "", false
	}
	at += begin
	for _, t := range a.Tokens {
		if at < len(t.Text) {
			return t, t.Text[:at], true
		}
		at -= len(t.Text)
	}
	return token, "", false
}

// replies converts an answer about n messages into one reply for each.
func (s spec) replies(a model.Answer, n int, calibrations Calibrations) ([]Reply, error) {
	answers, err := s.parse(a.Text, n)
	if err != nil {
		return nil, err
	}
	name := clipBytes(a.Model, 200)
	replies := make([]Reply, n)
	for i, picks := range answers {
		replies[i] = Reply{Tier: s.tier, Model: name, Prompt: s.version, Pack: n}
		for at, q := range s.questions {
			calibration, ok := calibrations.of(s.version, a.Model, q.name)
			replies[i].Choices = append(replies[i].Choices, q.choice(picks[at].code, q.shares(a, picks[at]), calibration, ok))
		}
	}
	return replies, nil
}

// choice returns a choice with its confidence. shares is nil if the server
// returns no log-probabilities.
func (q question) choice(code string, shares []float64, calibration Calibration, calibrated bool) Choice {
	at := q.index(code)
	out := Choice{Question: q.name, Code: code, Value: q.codes[at].value, Weight: halfWeight}
	switch {
	case calibrated && (shares != nil || calibration.Fixed > 0):
		out.Shares, out.Weight, out.Calibrated = calibration.believed(shares, at, len(q.codes)), calibration.Weight, true
	case shares == nil:
		out.Shares = spread(Fixed, at, len(q.codes))
	default:
		out.Shares = capped(shares, Cap)
	}
	out.Confidence = out.Shares[at]
	return out
}
