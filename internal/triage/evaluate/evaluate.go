// Package evaluate says how often triage is right. It compares what the rules and
// the embedded models say with what people said of the same mail, on the
// project's own fixture and, where a folder of labelled sets is given, on those.
//
// Every figure is cold or cross-validated. Cold: nothing of the set was used to
// train the model or to choose a threshold or a rule. Cross-validated: the set
// was divided, and each part was judged by a model that was trained without that
// part. A section has figures of one kind only.
package evaluate

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// Options say what is evaluated and by what.
type Options struct {
	// Fixture is the folder of the project's own fixture, Training that of its own
	// training examples.
	Fixture, Training fs.FS
	// Corpus is a folder of labelled sets, SpamAssassin the npm package of that
	// corpus. Either may be nil.
	Corpus, SpamAssassin fs.FS
	// Config is that of the models that are cross-validated, Cold that of the cold
	// model, in which nothing may be chosen by what a labelled set showed.
	Config, Cold classify.Config
	// Folds and Seeds are those of cross-validation.
	Folds, Seeds int
	// Attacks is how many of the project's own instructions are put into mail; 0
	// stands for all.
	Attacks int
	// Backends are the language models that are asked. With any, the report has what
	// these get right beside the cold model, and not what no model changes.
	Backends []Backend
	// Limit is about how many messages of each set models are asked; 0 stands for
	// all.
	Limit int
	// Repeat asks everything again, and packs in another order, to see which answers
	// stay.
	Repeat bool
	// Progress is told from time to time how far asking is; it may be nil.
	Progress func(string)
}

// Mode is how a model was kept from knowing what it was asked.
type Mode string

// The modes.
const (
	Cold           Mode = "cold"
	CrossValidated Mode = "cross-validated"
	// Tuned are figures of rules that were changed after a look at the set.
	Tuned Mode = "tuned"
	// Rules are figures of rules without any training.
	Rules Mode = "rules"
	// Asked are figures of language models, which may have seen a set that is public.
	Asked Mode = "asked"
	// Measured are figures that are no comparison with labels.
	Measured Mode = "measured"
)

// Section is a table of figures of one set in one mode.
type Section struct {
	Set  string `json:"set"`
	Mode Mode   `json:"mode"`
	// Examples is how many different examples were judged.
	Examples int      `json:"examples"`
	Note     string   `json:"note,omitempty"`
	Figures  []Figure `json:"figures"`
}

// Report is the result of an evaluation.
type Report struct {
	// Model is the digest of the cold model.
	Model    string    `json:"model"`
	Sections []Section `json:"sections"`
	// Absent are the sets that were not there.
	Absent []string `json:"absent,omitempty"`
	// Partial says that not all was asked that models were to be asked.
	Partial bool `json:"partial,omitempty"`
}

// run is an evaluation on its way.
type run struct {
	Options
	sources   []corpus.Source
	cold      *classify.Model
	own       fixture
	messages  corpus.Source
	phishing  corpus.Source
	sentences corpus.Source
	crossed   crossValidated
	report    Report
}

// Run evaluates. A report of models that were asked is returned with the error of
// a context that has ended, with figures of what was asked until then.
func Run(ctx context.Context, options Options) (Report, error) {
	r := &run{Options: options}
	if err := r.read(); err != nil {
		return Report{}, err
	}
	steps := []func(context.Context) error{
		r.trainCold, r.evaluateFixture, r.evaluateMessages, r.evaluatePhishing, r.evaluateRequests, r.evaluateStripping,
		r.evaluateInjection, r.evaluateLatency,
	}
	if len(r.Backends) > 0 {
		steps = []func(context.Context) error{r.trainCold, r.evaluateBackends}
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return r.report, err
		}
		if err := step(ctx); err != nil {
			return r.report, err
		}
	}
	return r.report, ctx.Err()
}

// read reads all sets that are there.
func (r *run) read() error {
	var err error
	if r.own, err = readFixture(r.Fixture); err != nil {
		return err
	}
	r.sources, r.report.Absent, err = corpus.Folders{
		Training: r.Training, Labelled: r.Corpus, SpamAssassin: r.SpamAssassin,
	}.Sources()
	r.messages, r.phishing, r.sentences = r.source(corpus.NameMessages), r.source(corpus.NamePhishing), r.source(corpus.NameRequests)
	return err
}

// source returns the source of a name, without examples if it is not there.
func (r *run) source(name string) corpus.Source {
	for _, s := range r.sources {
		if s.Name == name {
			return s
		}
	}
	return corpus.Source{Name: name}
}

// labelled reports whether a source is one of the sets that are evaluated.
func (r *run) labelled(source string) bool {
	return source == r.messages.Name || source == r.phishing.Name || source == r.sentences.Name
}

// trainCold trains on everything but the sets that are evaluated.
func (r *run) trainCold(context.Context) error {
	var sources []corpus.Source
	for _, source := range r.sources {
		if !r.labelled(source.Name) {
			sources = append(sources, source)
		}
	}
	m, sheet, err := classify.Train(sources, r.Cold)
	if err != nil {
		return fmt.Errorf("train the cold model: %w", err)
	}
	r.cold, r.report.Model = m, sheet.Digest
	return nil
}

func (r *run) add(s Section) { r.report.Sections = append(r.report.Sections, s) }
