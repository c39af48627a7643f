package classify

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Config configures the training of models. Zero fields have defaults.
type Config struct {
	Scale    Scale
	Mail     Descent
	Sentence Descent
	// Weights holds the weights of sources' examples by name; the default is 1.
	Weights map[string]float64
	// Soft is the share of a priority's weight that its neighbours on the
	// ladder get in training, Near the share with which they count in the
	// choice.
	Soft, Near float64
	// UrgentRecall and AttentionRecall are the shares that the cuts find among
	// held-out examples.
	UrgentRecall, AttentionRecall float64
	Seed                          uint64
	// Whole permits locked examples. Only the shipped model is trained with it.
	Whole bool
}

// Untuned returns a configuration that was fixed before any labelled set was
// used. Cold figures are of models trained with it.
func Untuned() Config {
	return Config{
		Scale:    Scale{Subject: 0.7, Body: 0.8, Both: 0.8, Start: 0.5, Characters: 0.6, Fact: 0.25},
		Mail:     Descent{Rate: 0.5, Decay: 1e-4, Epochs: 12},
		Sentence: Descent{Rate: 0.3, Decay: 1e-4, Epochs: 8},
		Weights:  map[string]float64{corpus.NameSpamAssassin: 0.3},
		Soft:     0.05, Near: 0.3, UrgentRecall: 0.93, AttentionRecall: 0.97, Seed: 1,
	}
}

// Defaults returns the configuration of the shipped model. It differs from
// Untuned where cross-validation on the labelled sets was better.
func Defaults() Config {
	c := Untuned()
	c.Scale.Characters, c.Scale.Fact = 0, 0.55
	c.Mail.Rate = 0.2
	c.Sentence = Descent{Rate: 0.1, Decay: 1e-3, Epochs: 12}
	c.Weights[corpus.NameTraining] = 0.5
	c.UrgentRecall = 0.92
	return c
}

// folds is the number of parts that are held out in turn for calibration.
const folds = 5

// Train trains a model. It is deterministic.
func Train(sources []corpus.Source, config Config) (*Model, Sheet, error) {
	set, err := Prepare(sources, config)
	if err != nil {
		return nil, Sheet{}, err
	}
	return set.Train(func(string, corpus.Example) bool { return true })
}

// Set is a set of examples with computed features.
type Set struct {
	config     Config
	vocabulary vocabulary
	sources    []corpus.Source
	samples    []sample
}

// sample is an example and its features.
type sample struct {
	source  int
	example corpus.Example
	weight  float64
	// content holds the features of a message, sentences those of its
	// sentences, or of the example's sentence.
	content   []Entry
	sentences [][]Entry
}

// Prepare parses the messages of sources and computes their features.
func Prepare(sources []corpus.Source, config Config) (*Set, error) {
	set := &Set{config: config, vocabulary: newVocabulary(config.Scale), sources: sources}
	for i, source := range sources {
		weight, ok := config.Weights[source.Name]
		if !ok {
			weight = 1
		}
		for _, e := range source.Examples {
			if corpus.Locked(source.Name, e.ID) && !config.Whole {
				return nil, fmt.Errorf("%s: example %s is locked; train on the open part of the set", source.Name, e.ID)
			}
			if err := checkLabels(e.Labels); err != nil {
				return nil, fmt.Errorf("%s: example %s: %w", source.Name, e.ID, err)
			}
			set.add(i, e, weight)
		}
	}
	if len(set.samples) == 0 {
		return nil, errors.New("train: the sources hold no examples")
	}
	set.compute()
	return set, nil
}

// add adds an example. A message of the project's own, which has all headers,
// counts half as it is and half with only the headers that every source of mail
// has, since an archive may have dropped the others.
func (s *Set) add(source int, e corpus.Example, weight float64) {
	if s.sources[source].Name != corpus.NameTraining || e.Raw == nil {
		s.samples = append(s.samples, sample{source: source, example: e, weight: weight})
		return
	}
	bare := e
	bare.Raw = bareHeaders(e.Raw)
	s.samples = append(s.samples,
		sample{source: source, example: e, weight: weight / 2}, sample{source: source, example: bare, weight: weight / 2})
}

// bareHeaders returns a message with only the header fields about authors,
// recipients, subject, date and encoding.
func bareHeaders(raw []byte) []byte {
	header, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	var out []byte
	keep := false
	for line := range bytes.Lines(header) {
		if line[0] != ' ' && line[0] != '\t' {
			name, _, _ := bytes.Cut(line, []byte(":"))
			keep = bare(strings.ToLower(string(name)))
		}
		if keep {
			out = append(out, bytes.TrimRight(line, "\r\n")...)
			out = append(out, '\r', '\n')
		}
	}
	return slices.Concat(out, []byte("\r\n"), body)
}

func bare(field string) bool {
	switch field {
	case "from", "to", "cc", "date", "subject", "mime-version":
		return true
	}
	return strings.HasPrefix(field, "content-")
}

func checkLabels(l corpus.Labels) error {
	for _, given := range []struct {
		head  Head
		label string
	}{{HeadAct, l.Act}, {HeadCategory, l.Category}, {HeadPriority, l.Priority}} {
		if given.label != "" && given.head.index(given.label) < 0 {
			return fmt.Errorf("unknown label %q of %s; want one of %q", given.label, given.head, given.head.Classes())
		}
	}
	return nil
}

// compute computes the features, with as many goroutines as there are
// processors. It waits for all of them.
func (s *Set) compute() {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for n := range workers {
		wg.Go(func() {
			for i := n; i < len(s.samples); i += workers {
				s.samples[i].compute(s.vocabulary)
			}
		})
	}
	wg.Wait()
}

func (s *sample) compute(v vocabulary) {
	c := &collector{}
	keep := func(text string) { s.sentences = append(s.sentences, append([]Entry(nil), v.sentence(c, text)...)) }
	if s.example.Raw == nil {
		keep(s.example.Sentence)
		return
	}
	m, about, found := Read(s.example)
	s.content = v.content(m, about, found).out
	if s.example.Labels.Act == "" && s.example.Labels.Priority == "" {
		return // no head that asks is trained on it
	}
	for text := range sentences(m.Body) {
		keep(text)
	}
	keep(m.Subject)
}

// Read parses an example's message and applies the rules as far as its headers
// allow: an example has no account and no history.
func Read(e corpus.Example) (*message.Message, signal.Context, signal.Result) {
	m := message.Parse(e.Raw)
	about := signal.Context{Now: m.Date}
	if e.Owner != "" {
		about.Addresses = []string{e.Owner}
		if domain := corpus.Domain(e.Owner); !freeMail(domain) {
			about.Domains = []string{domain}
		}
	}
	return m, about, signal.Find(m, about)
}

// Train trains a model on the examples for which keep returns true.
func (s *Set) Train(keep func(source string, e corpus.Example) bool) (*Model, Sheet, error) {
	t := &training{config: s.config, results: map[Head]*result{}}
	for i := range s.samples {
		if sample := &s.samples[i]; keep(s.sources[sample.source].Name, sample.example) {
			t.samples = append(t.samples, sample)
		}
	}
	if len(t.samples) == 0 {
		return nil, Sheet{}, errors.New("train: no example was kept")
	}
	t.run()
	m, err := t.model(s.vocabulary)
	if err != nil {
		return nil, Sheet{}, err
	}
	return m, t.sheet(s.sources, m), nil
}
