// Package evaluate measures the accuracy of triage. It compares the results of
// the rules and the embedded models with people's labels of the same mail, on
// the project's own fixture and, if given, on a folder of labelled sets.
//
// Every figure is cold or cross-validated. Cold: nothing of the set was used
// to train the model or to choose a threshold or a rule. Cross-validated: the
// set was divided, and each part was judged by a model that was trained without
// it. A section has figures of one kind only.
package evaluate

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// Options configures an evaluation.
type Options struct {
	// Fixture is the folder of the project's own fixture, Training that of its
	// own training examples.
	Fixture, Training fs.FS
	// Languages and Lures are the folders of the project's own sets of mail in
	// eight languages and of lures. Either may be nil.
	Languages, Lures fs.FS
	// Corpus is a folder of labelled sets, SpamAssassin the npm package of that
	// corpus. Either may be nil.
	Corpus, SpamAssassin fs.FS
	// Config configures the cross-validated models and Cold the cold model;
	// nothing in Cold may be chosen by results on a labelled set.
	Config, Cold classify.Config
	// Folds and Seeds are the numbers of folds and repetitions of
	// cross-validation.
	Folds, Seeds int
	// Attacks limits the project's own instructions that are put into mail; 0
	// means all.
	Attacks int
	// Backends are the language models to ask. With any, the report compares
	// them with the cold model, and omits the figures that no model changes.
	Backends []Backend
	// Limit limits the messages of each set that models are asked about; 0
	// means all.
	Limit int
	// Repeat asks everything again, and packs in another order, to measure the
	// stability of answers.
	Repeat bool
	// Locked evaluates the locked thirds alone. Each run is recorded: another
	// look at them after a change is no longer a first look.
	Locked bool
	// Progress is called with reports of progress; it may be nil.
	Progress func(string)
}

// Mode is the way in which figures are independent of training.
type Mode string

// The modes.
const (
	Cold           Mode = "cold"
	CrossValidated Mode = "cross-validated"
	// LockedThird figures are of the locked thirds, with models that were
	// trained and tuned on the others.
	LockedThird Mode = "locked third"
	// Tuned figures are of rules that were changed after inspecting the set.
	Tuned Mode = "tuned"
	// Rules figures are of rules without any training.
	Rules Mode = "rules"
	// Asked figures are of language models, which may have seen a public set.
	Asked Mode = "asked"
	// Measured figures are not comparisons with labels.
	Measured Mode = "measured"
	// Shipped figures are of the shipped models, on mail that they were not
	// trained on.
	Shipped Mode = "shipped"
)

// Section is a table of figures of one set in one mode.
type Section struct {
	Set  string `json:"set"`
	Mode Mode   `json:"mode"`
	// Examples is the number of distinct examples.
	Examples int `json:"examples"`
	// Trained and Tuned name the mail that the models were trained on, and on
	// which rules, thresholds and prompts were chosen.
	Trained string   `json:"trained"`
	Tuned   string   `json:"tuned"`
	Note    string   `json:"note,omitempty"`
	Figures []Figure `json:"figures"`
}

// Report is the result of an evaluation.
type Report struct {
	// Model is the digest of the cold model.
	Model    string    `json:"model"`
	Sections []Section `json:"sections"`
	// Absent lists the missing sets.
	Absent []string `json:"absent,omitempty"`
	// Partial reports whether some questions to models are missing.
	Partial bool `json:"partial,omitempty"`
}

// run is an evaluation in progress.
type run struct {
	Options
	sources   []corpus.Source
	cold      *classify.Model
	shipped   *classify.Model
	own       fixture
	languages fixture
	lures     fixture
	messages  corpus.Source
	phishing  corpus.Source
	sentences corpus.Source
	crossed   crossValidated
	report    Report
}

// Run evaluates triage. If ctx ends while models are asked, it returns its
// error with a report of the answers so far.
func Run(ctx context.Context, options Options) (Report, error) {
	r := &run{Options: options}
	if err := r.read(); err != nil {
		return Report{}, err
	}
	steps := []func(context.Context) error{
		r.trainCold, r.evaluateFixture, r.evaluateMessages, r.evaluatePhishing, r.evaluateSets, r.evaluateRequests, r.evaluateStripping,
		r.evaluateInjection, r.evaluateLatency,
	}
	switch {
	case r.Locked:
		steps = []func(context.Context) error{r.trainCold, r.evaluateLocked}
	case len(r.Backends) > 0:
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

// read reads all present sets.
func (r *run) read() error {
	var err error
	for _, set := range []struct {
		to    *fixture
		files fs.FS
		name  string
	}{{&r.own, r.Fixture, corpus.NameFixture}, {&r.languages, r.Languages, corpus.NameLanguages}, {&r.lures, r.Lures, corpus.NameLures}} {
		if set.files == nil {
			continue
		}
		if *set.to, err = readFixture(set.files, set.name); err != nil {
			return err
		}
	}
	r.sources, r.report.Absent, err = corpus.Folders{
		Training: r.Training, Languages: r.Languages, Lures: r.Lures, Labelled: r.Corpus, SpamAssassin: r.SpamAssassin,
	}.Sources()
	if err != nil {
		return err
	}
	part := corpus.Source.Open
	if r.Locked {
		part = corpus.Source.LockedPart
	}
	// Locked examples are never used for training, and measured only on demand.
	whole := slices.Clone(r.sources)
	for i := range r.sources {
		r.sources[i] = r.sources[i].Open()
	}
	for _, own := range []*fixture{&r.own, &r.languages, &r.lures} {
		own.source = part(own.source)
	}
	source := func(name string) corpus.Source {
		at := slices.IndexFunc(whole, func(s corpus.Source) bool { return s.Name == name })
		if at < 0 {
			return corpus.Source{Name: name}
		}
		return part(whole[at])
	}
	r.messages, r.phishing, r.sentences = source(corpus.NameMessages), source(corpus.NamePhishing), source(corpus.NameRequests)
	return nil
}

// labelled reports whether a source is one of the sets that are evaluated.
func (r *run) labelled(source string) bool {
	return slices.Contains([]string{corpus.NameMessages, corpus.NamePhishing, corpus.NameRequests, corpus.NameLanguages, corpus.NameLures}, source)
}

// trainCold trains on everything except the evaluated sets.
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

// add adds a section, with the mail that its models were trained and tuned on.
func (r *run) add(s Section) {
	s.Trained, s.Tuned = r.origin(s.Mode)
	r.report.Sections = append(r.report.Sections, s)
}

// origin returns the mail on which the models of a mode were trained and tuned.
func (r *run) origin(m Mode) (trained, tuned string) {
	var names []string
	for _, source := range r.sources {
		if !r.labelled(source.Name) {
			names = append(names, source.Name)
		}
	}
	cold := strings.Join(names, ", ")
	switch m {
	case Cold:
		return cold, "none of the evaluated sets"
	case CrossValidated:
		return cold + ", and the open thirds without the judged fold", "the open thirds"
	case LockedThird:
		return cold + ", and the open thirds", "the open thirds"
	case Tuned:
		return cold, "this set: rules were changed after a look at it"
	case Rules:
		return "no models", "rules may have been written with the set in view"
	case Asked:
		return "as its makers trained the model", "none of the evaluated sets"
	case Measured:
		return cold, "none of the evaluated sets"
	case Shipped:
		return "all sets of internal/triage/classify/model.md", "the open thirds, without the mail of this set"
	}
	return "", ""
}
