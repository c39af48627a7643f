package evaluate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"net/mail"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// noisyModel is a model that knows the labels and errs about some messages.
type noisyModel struct {
	labels map[string]labels
	errs   func(subject string) bool
	mutex  sync.Mutex
	// acts holds the messages whose act was asked, and whether the answer was
	// right.
	acts map[string]bool
}

// plainSubject matches a subject that a prompt shows unchanged.
var plainSubject = regexp.MustCompile(`^[A-Za-z0-9 ,.:?!-]{4,150}$`)

// newScholar returns a model, and the messages of the fixture that have
// distinct subjects, each with two subjects.
func newScholar(t *testing.T, errs func(string) bool) (*noisyModel, fstest.MapFS) {
	t.Helper()
	s, files := noisyOf(t, fixtureFolder, errs, "", "Once more, ")
	known, err := os.ReadFile(fixtureFolder + "/context.json")
	if err != nil {
		t.Fatal(err)
	}
	files["context.json"] = &fstest.MapFile{Data: known}
	return s, files
}

// noisyOf returns a model and the messages of a folder, each with every prefix
// before its subject.
func noisyOf(t *testing.T, folder string, errs func(string) bool, prefixes ...string) (*noisyModel, fstest.MapFS) {
	t.Helper()
	s := &noisyModel{labels: map[string]labels{}, errs: errs, acts: map[string]bool{}}
	var lines bytes.Buffer
	for _, l := range readLabelled(t, folder) {
		for _, before := range prefixes {
			raw := strings.Replace(l.Raw, "\nSubject: ", "\nSubject: "+before, 1)
			m, err := mail.ReadMessage(strings.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			subject := m.Header.Get("Subject")
			if _, twice := s.labels[subject]; twice || !plainSubject.MatchString(subject) {
				continue
			}
			s.labels[subject] = l.Labels
			line, err := json.Marshal(map[string]any{"id": before + l.ID, "raw": raw, "owner": l.Owner, "labels": map[string]any{
				"act": l.Labels.Act, "category": l.Labels.Category, "priority": l.Labels.Priority, "bucket": l.Labels.Bucket, "cohort": l.Labels.Cohort,
			}})
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
		}
	}
	return s, fstest.MapFS{"a.jsonl": {Data: lines.Bytes()}}
}

// answer implements modeltest.Config.Answer.
func (s *noisyModel) answer(r modeltest.Request) modeltest.Reply {
	var subjects []string
	for _, section := range strings.Split(r.User, "[mail m")[1:] {
		_, rest, _ := strings.Cut(section, "\nSubject: ")
		subject, _, _ := strings.Cut(rest, "\n")
		subjects = append(subjects, subject)
	}
	return modeltest.Reply{Text: modeltest.Fill(r.Schema, func(path string, allowed []string) string {
		at := int(path[1] - '1')
		return s.code(subjects[at], path[strings.IndexByte(path, '.')+1:], allowed)
	})}
}

// code returns the code of the label, or the next one if the model errs.
func (s *noisyModel) code(subject, key string, allowed []string) string {
	l := s.labels[subject]
	value, tier, question := "", cascade.T2a, ""
	switch {
	case key == "a":
		value, question = l.Act, "act"
	case key == "c":
		value, question = l.Category, "category"
	case key == "p":
		value, question = l.Priority, "priority"
	case key == "s" && len(allowed) == 2:
		value, tier, question = map[bool]string{true: "no", false: "yes"}[l.Bucket == "archived"], cascade.T1, "show"
	default:
		return allowed[0]
	}
	at := slices.Index(cascade.Values(tier, question), value)
	if s.errs(subject) {
		at = (at + 1) % len(allowed)
	}
	if key == "a" {
		s.mutex.Lock()
		s.acts[subject] = !s.errs(subject)
		s.mutex.Unlock()
	}
	return allowed[at]
}

func (s *noisyModel) right() (right, of float64) {
	for _, ok := range s.acts {
		of++
		if ok {
			right++
		}
	}
	return right, of
}

// sometimes returns a function that is true for about every nth message.
func sometimes(n uint32) func(string) bool {
	return func(subject string) bool {
		h := fnv.New32a()
		_, _ = h.Write([]byte(subject))
		return h.Sum32()%n == 0
	}
}

func backend(t *testing.T, name string, server *modeltest.Server) evaluate.Backend {
	t.Helper()
	set, err := model.Open(server.Models(), model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	b, err := evaluate.OpenBackend(t.Context(), name, set)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func figure(t *testing.T, r evaluate.Report, set, name string) evaluate.Figure {
	t.Helper()
	s, ok := section(r, set, evaluate.Asked)
	at := slices.IndexFunc(s.Figures, func(f evaluate.Figure) bool { return f.Name == name })
	if !ok || at < 0 {
		t.Fatalf("%q has no figure %q: %+v", set, name, r)
	}
	return s.Figures[at]
}

// TestFiguresOfAModelWithKnownErrors has a model that knows the labels of
// all but some messages, and compares it with one that knows all.
func TestFiguresOfAModelWithKnownErrors(t *testing.T) {
	t.Parallel()
	errs, files := newScholar(t, sometimes(5))
	knows, _ := newScholar(t, func(string) bool { return false })
	o := options(t)
	o.Fixture, o.Repeat = files, true
	o.Backends = []evaluate.Backend{
		backend(t, "errs", modeltest.New(t, modeltest.Config{Answer: errs.answer})),
		backend(t, "knows", modeltest.New(t, modeltest.Config{Answer: knows.answer})),
	}

	got, err := evaluate.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	right, of := errs.right()
	if of < 60 || right == of {
		t.Fatalf("the model was right about %v of %v messages: that proves little", right, of)
	}
	for _, want := range []struct {
		set, name string
		value     float64
	}{
		{"fixture, errs, t2a", "act exact: t2a", right / of},
		{"fixture, errs, t2a", "category exact: t2a", right / of},
		{"fixture, errs, t2a", "act calibration error, as the model gives it", math.Abs(0.9 - right/of)},
		{"fixture, errs, t2a", "act calibration error, as it is believed", right/of - cascade.Cap},
		{"fixture, knows, t2a", "act exact: t2a", 1},
		{"fixture, knows, t2a", "priority exact: t2a", 1},
		{"fixture, knows, t1", "worth showing recall: t1", 1},
		{"fixture, knows, t1", "worth showing precision: t1", 1},
		{"fixture, knows, t2a", "answers that left their schema", 0},
		{"fixture, errs, stability", "t2a: messages answered otherwise when asked again", 0},
		{"fixture, errs, stability", "t2a: answers that change in packs in reverse", 0},
		{"fixture, knows, stability", "t2a act otherwise than errs", 1 - right/of},
	} {
		if f := figure(t, got, want.set, want.name); math.Abs(f.Value-want.value) > 1e-6 {
			t.Errorf("%s: %s = %v, want %v", want.set, want.name, f.Value, want.value)
		}
	}
	if f := figure(t, got, "fixture, errs, t2a", "act calibration error, fitted on the other half"); f.Value > 0.1 {
		t.Errorf("with calibrations the error is %v", f.Value)
	}
	for _, name := range []string{"priority exact", "act exact"} {
		with := figure(t, got, "fixture, knows, as triage asks", name+": with models").Value
		if without := figure(t, got, "fixture, knows, as triage asks", name+": embedded models").Value; with <= without {
			t.Errorf("%s with a model that knows all is %v, without %v", name, with, without)
		}
	}
	if f := figure(t, got, "fixture, knows, as triage asks", "prompts"); f.Value < 1000 {
		t.Errorf("100 messages take %v %s", f.Value, f.Unit)
	}
}

// TestFiguresShowInvalidAndUnstableAnswers has answers that depend on the
// place in a pack, and invalid ones.
func TestFiguresShowInvalidAndUnstableAnswers(t *testing.T) {
	t.Parallel()
	_, files := newScholar(t, sometimes(5))
	server := modeltest.New(t, modeltest.Config{Answer: modeltest.Pick(func(path string, allowed []string) string {
		return allowed[int(path[1])%len(allowed)]
	})})
	o := options(t)
	o.Fixture, o.Repeat, o.Limit = files, true, 60
	o.Backends = []evaluate.Backend{backend(t, "places", server)}
	server.FailNext(3, modeltest.Ignored)

	got, err := evaluate.Run(t.Context(), o)

	if err != nil || got.Partial {
		t.Fatalf("Run() = partial %v, %v", got.Partial, err)
	}
	if f := figure(t, got, "fixture, places, stability", "t2a: answers that change in packs in reverse"); f.Value < 0.5 {
		t.Errorf("%v of the answers change in packs in reverse", f.Value)
	}
	if f := figure(t, got, "fixture, places, t1", "answers that left their schema"); f.Value == 0 {
		t.Error("no answer left its schema")
	}
}

// TestPartialFiguresAreMarked checks that a section is marked as partial after an
// interruption or a server's failure.
func TestPartialFiguresAreMarked(t *testing.T) {
	t.Parallel()
	s, files := newScholar(t, sometimes(5))
	server := modeltest.New(t, modeltest.Config{Answer: s.answer})
	o := options(t)
	o.Fixture = files
	o.Backends = []evaluate.Backend{backend(t, "one", server)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.Progress = func(string) { stop() }

	got, err := evaluate.Run(ctx, o)

	if !errors.Is(err, context.Canceled) || !got.Partial || len(got.Sections) != 1 || !strings.Contains(got.Sections[0].Note, "interrupted") || got.Sections[0].Examples == 0 {
		t.Errorf("Run() = %+v, %v", got, err)
	}
	o.Progress, o.Backends = nil, []evaluate.Backend{backend(t, "two", server)}
	server.Fail(modeltest.Loading)
	if got, err = evaluate.Run(t.Context(), o); err != nil || !got.Partial || !strings.Contains(got.Sections[0].Note, "unavailable") {
		t.Errorf("Run() = %+v, %v", got, err)
	}
}
