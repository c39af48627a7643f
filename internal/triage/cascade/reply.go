package cascade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Reply is a tier's answer about a message, or the reason why it is missing. It
// contains only codes of fixed lists, names and computed numbers, and no text
// of the mail or of the model.
type Reply struct {
	Tier Tier `json:"tier"`
	// Model is the name of the model that answered, and Prompt the version of
	// its prompt. A reply to another version does not count.
	Model  string `json:"model,omitempty"`
	Prompt string `json:"prompt"`
	// Pack is the number of messages in the question.
	Pack    int      `json:"pack"`
	Choices []Choice `json:"choices,omitempty"`
	// Failed is why the tier has no answer although it was asked about this
	// message alone, so that the result of the lower tiers stands. It is empty
	// after an answer.
	Failed model.Kind `json:"failed,omitempty"`
}

// Choice is the answer to one question of a tier.
type Choice struct {
	// Question is its name, such as "act"; Code is the model's code and Value
	// its value.
	Question string `json:"question"`
	Code     string `json:"code"`
	Value    string `json:"value"`
	// Confidence is the calibrated or capped confidence in the answer, and
	// Shares that of all codes, in the order of the list.
	Confidence float64   `json:"confidence"`
	Shares     []float64 `json:"shares"`
	// Calibrated reports whether the confidence comes from held-out examples.
	// Otherwise it is at most Cap.
	Calibrated bool `json:"calibrated,omitempty"`
	// Weight is the weight of a calibrated answer against the embedded models
	// if they differ.
	Weight float64 `json:"weight"`
}

// Answered reports whether the tier answered.
func (r Reply) Answered() bool { return r.Failed == "" && len(r.Choices) > 0 }

// choice returns the answer to a question if it is valid.
func (r Reply) choice(name string) (Choice, question, bool) {
	q, ok := specOf(r.Tier).question(name)
	at := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Question == name })
	if !ok || at < 0 || !r.Answered() {
		return Choice{}, question{}, false
	}
	c := r.Choices[at]
	return c, q, q.index(c.Code) >= 0 && isDistribution(c.Shares, len(q.codes))
}

// code returns the answer to a question, or "".
func (r Reply) code(name string) string {
	if c, _, ok := r.choice(name); ok {
		return c.Code
	}
	return ""
}

// current returns the replies that count: of each tier the last one to the
// current version of its prompt.
func current(replies []Reply) map[Tier]Reply {
	last := map[Tier]Reply{}
	for _, r := range replies {
		if slices.Contains(Tiers(), r.Tier) && r.Prompt == specOf(r.Tier).version {
			last[r.Tier] = r
		}
	}
	return last
}

// Words describes the answers in fixed words.
func (r Reply) Words() string {
	var words []string
	for _, q := range specOf(r.Tier).questions {
		if c, _, ok := r.choice(q.name); ok {
			words = append(words, q.name+" "+q.codes[q.index(c.Code)].value)
		}
	}
	return strings.ReplaceAll(strings.Join(words, ", "), "_", " ")
}

// Steps returns a trace step for each reply that counts.
func Steps(replies []Reply) []decide.Step {
	var steps []decide.Step
	last := current(replies)
	for _, tier := range Tiers() {
		r, ok := last[tier]
		if !ok {
			continue
		}
		if !r.Answered() {
			steps = append(steps, decide.Step{Rule: string(tier), To: "no answer", Because: failure(r.Failed) + ": the answer of the tiers below remains; prompt " + r.Prompt})
			continue
		}
		steps = append(steps, decide.Step{Rule: string(tier), To: r.Words(), Because: r.because()})
	}
	return steps
}

func (r Reply) because() string {
	var sure []string
	calibrated := true
	for _, c := range r.Choices {
		sure = append(sure, fmt.Sprintf("%.2f", c.Confidence))
		calibrated = calibrated && c.Calibrated
	}
	text := fmt.Sprintf("model %s, prompt %s, is believed to %s", r.Model, r.Prompt, strings.Join(sure, ", "))
	if !calibrated {
		text += fmt.Sprintf(", no calibration: at most %.2f", Cap)
	}
	if r.Pack > 1 {
		text += fmt.Sprintf("; asked with %d others", r.Pack-1)
	}
	return text
}

// failure describes why a message that was asked about alone has no answer.
func failure(kind model.Kind) string {
	switch kind {
	case model.TooLong:
		return "the message does not fit the model's context"
	case model.Cut:
		return "the answer was truncated"
	case model.Invalid:
		return "the answer did not match its schema"
	case model.Unavailable, model.WrongModel, model.Remote, model.Disobedient:
	}
	return "the model gave no answer"
}
