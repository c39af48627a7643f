package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

const (
	// LeastExamples is the number of answers that a calibration needs in each
	// half.
	LeastExamples = 100
	// MostError is the largest calibration error on the held-out half at which
	// a calibration is used.
	MostError = 0.1
)

// Fitted is a calibration of a question with its quality on held-out messages.
type Fitted struct {
	Tier     cascade.Tier `json:"tier"`
	Question string       `json:"question"`
	Model    string       `json:"model"`
	// Made and Held are the numbers of answers that it was made from and
	// evaluated on.
	Made int `json:"made"`
	Held int `json:"held"`
	// Before is the calibration error of the model's own confidence, or of the
	// fixed one without log-probabilities; After is that with the calibration.
	Before float64 `json:"error_before"`
	After  float64 `json:"error_after"`
	// Why is the reason for a missing calibration, else "".
	Why         string              `json:"why,omitempty"`
	Calibration cascade.Calibration `json:"calibration,omitzero"`
}

// Calibrate asks the models of a back end about the project's own training
// mail, and fits calibrations on one half of it. The embedded models of the
// comparison were trained without these messages. Sets for evaluation are not
// used, so that figures about them stay cold.
func Calibrate(ctx context.Context, o Options, b Backend) ([]Fitted, error) {
	r := &run{Options: o}
	s, err := r.trainingSet(ctx)
	if err != nil {
		return nil, err
	}
	asking := newRemembering(b, r.progress("training mail, "+b.Name))
	var all []Fitted
	for _, tier := range asking.tiers() {
		labelled := slices.DeleteFunc(cascade.Questions(tier), func(q string) bool {
			return !slices.ContainsFunc(s.examples, func(e example) bool { return e.right(q) != "" })
		})
		if len(labelled) == 0 {
			continue
		}
		mails := s.everyMail(tier)
		c, _ := asking.cascade(tier)
		results := c.Ask(ctx, mails)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n, kind := unanswered(results); n > 0 {
			return nil, fmt.Errorf("%s: %d messages have no answer of %s, since the server failed (%s)", b.Name, n, tier, kind)
		}
		name := answersOf(tier, results).model()
		raw := answersOf(tier, asking.recall(cascade.Raw(name), tier).Ask(ctx, mails))
		for _, question := range labelled {
			all = append(all, s.fit(tier, question, name, raw))
		}
	}
	return all, nil
}

// fit makes a calibration from one half and evaluates it on the other.
func (s set) fit(tier cascade.Tier, question, name string, raw answers) Fitted {
	halves := s.samples(tier, question, raw)
	n := len(cascade.Values(tier, question))
	f := Fitted{Tier: tier, Question: question, Model: name, Made: len(halves[0]), Held: len(halves[1])}
	if min(f.Made, f.Held) < LeastExamples {
		f.Why = fmt.Sprintf("there are fewer than %d answers in a half", LeastExamples)
		return f
	}
	c := cascade.Fit(halves[0], n)
	f.Before = cascade.CalibrationError(halves[1], n, cascade.Calibration{Temperature: 1, Fixed: cascade.Fixed})
	f.After = cascade.CalibrationError(halves[1], n, c)
	if f.After > MostError {
		f.Why = fmt.Sprintf("the error on the half that was held out is over %.2f", MostError)
		return f
	}
	f.Calibration = c
	return f
}

// Calibrations returns the fitted calibrations, which override those of over.
func Calibrations(all []Fitted, over cascade.Calibrations) cascade.Calibrations {
	out := cascade.Calibrations{}
	for _, f := range all {
		if f.Why == "" {
			prompt := cascade.Prompt(f.Tier)
			if out[prompt] == nil {
				out[prompt] = map[string]map[string]cascade.Calibration{}
			}
			if out[prompt][f.Model] == nil {
				out[prompt][f.Model] = map[string]cascade.Calibration{}
			}
			out[prompt][f.Model][f.Question] = f.Calibration
		}
	}
	return over.With(out)
}

// trainingSet returns the project's own training mail; each message was judged
// by embedded models that were trained without it.
func (r *run) trainingSet(ctx context.Context) (set, error) {
	source, err := corpus.Own(r.Training, corpus.NameTraining)
	if err != nil {
		return set{}, err
	}
	prepared, err := classify.Prepare([]corpus.Source{source}, r.Cold)
	if err != nil {
		return set{}, err
	}
	messages := source.Subset(func(e corpus.Example) bool { return e.Raw != nil })
	messages.Examples = limited(messages.Examples, r.Limit)
	out := set{name: "training mail"}
	for part := range r.Folds {
		if err := ctx.Err(); err != nil {
			return set{}, err
		}
		held := func(e corpus.Example) bool { return fold(e.ID, 1, r.Folds) == part }
		m, _, err := prepared.Train(func(_ string, e corpus.Example) bool { return !held(e) })
		if err != nil {
			return set{}, fmt.Errorf("train without a part: %w", err)
		}
		for _, e := range messages.Subset(held).Examples {
			out.examples = append(out.examples, example{judged: judge(m, e), mail: cascade.Mail{ID: uuid.NewSHA1(uuid.Nil, []byte(e.ID))}})
		}
	}
	for i, e := range out.examples {
		// No account knows these senders. With the cohort of the label, the
		// packs are like those of an account.
		out.examples[i].mail.Subject, out.examples[i].mail.Body, out.examples[i].mail.Signals = e.message.Subject, e.message.Body, e.signals
		out.examples[i].mail.Decision = decide.Decision{Cohort: decide.Cohort(e.labels.Cohort)}
	}
	if len(out.examples) == 0 {
		return set{}, errors.New("no training mail")
	}
	return out, nil
}
