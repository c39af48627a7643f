package cascade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Reply is what a tier said of a message, or why it said nothing. It holds codes
// of fixed lists, names and numbers that were computed here, and no text of the
// mail or of the model.
type Reply struct {
	Tier Tier `json:"tier"`
	// Model is the name of the model that answered, and Prompt the version of what
	// it was asked. A reply to another version counts as none.
	Model  string `json:"model,omitempty"`
	Prompt string `json:"prompt"`
	// Pack is how many messages were asked about together.
	Pack    int      `json:"pack"`
	Choices []Choice `json:"choices,omitempty"`
	// Failed is why the tier said nothing of this message though it was asked about
	// it alone, so that what the tiers below said remains. Empty if it answered.
	Failed model.Kind `json:"failed,omitempty"`
}

// Choice is the answer to one of the questions of a tier.
type Choice struct {
	// Question is its name, such as "act"; Code is the answer as the model wrote it
	// and Value what that stands for.
	Question string `json:"question"`
	Code     string `json:"code"`
	Value    string `json:"value"`
	// Confidence is how far the answer is believed, calibrated where the model is,
	// and Shares the same of all codes, in the order of the list.
	Confidence float64   `json:"confidence"`
	Shares     []float64 `json:"shares"`
	// Calibrated says that the confidence was set by held-out examples. Without, it
	// is at most Cap.
	Calibrated bool `json:"calibrated,omitempty"`
	// Weight is how much a calibrated answer counts against the embedded models
	// where the two differ.
	Weight float64 `json:"weight"`
}

// Answered reports whether the tier answered.
func (r Reply) Answered() bool { return r.Failed == "" && len(r.Choices) > 0 }

// choice returns the answer to a question if it can be used.
func (r Reply) choice(name string) (Choice, question, bool) {
	q, ok := specOf(r.Tier).question(name)
	at := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Question == name })
	if !ok || at < 0 || !r.Answered() {
		return Choice{}, question{}, false
	}
	c := r.Choices[at]
	return c, q, q.index(c.Code) >= 0 && isDistribution(c.Shares, len(q.codes))
}

// code returns the answer to a question; empty if there is none.
func (r Reply) code(name string) string {
	if c, _, ok := r.choice(name); ok {
		return c.Code
	}
	return ""
}

// current returns the replies that count: of each tier the last one to the
// present version of its prompt.
func current(replies []Reply) map[Tier]Reply {
	last := map[Tier]Reply{}
	for _, r := range replies {
		if slices.Contains(Tiers(), r.Tier) && r.Prompt == specOf(r.Tier).version {
			last[r.Tier] = r
		}
	}
	return last
}

// Words returns what was answered, in fixed words.
func (r Reply) Words() string {
	var words []string
	for _, q := range specOf(r.Tier).questions {
		if c, _, ok := r.choice(q.name); ok {
			words = append(words, q.name+" "+q.codes[q.index(c.Code)].value)
		}
	}
	return strings.ReplaceAll(strings.Join(words, ", "), "_", " ")
}

// Steps returns a step of the trace for each reply that counts.
func Steps(replies []Reply) []decide.Step {
	var steps []decide.Step
	last := current(replies)
	for _, tier := range Tiers() {
		r, ok := last[tier]
		if !ok {
			continue
		}
		if !r.Answered() {
			steps = append(steps, decide.Step{Rule: string(tier), To: "no answer", Because: failure(r.Failed) + ": what the tiers below said remains; prompt " + r.Prompt})
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

// failure says in words why a message that was asked about alone has no answer.
func failure(kind model.Kind) string {
	switch kind {
	case model.TooLong:
		return "the message does not fit the model's context"
	case model.Cut:
		return "the answer had no end"
	case model.Invalid:
		return "the answer was none by its schema"
	case model.Unavailable, model.WrongModel, model.Remote, model.Disobedient:
	}
	return "the model gave no answer"
}
