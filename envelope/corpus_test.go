package envelope_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// sample is one file of the corpus.
type sample struct {
	name string
	text []byte
}

// corpus returns the files of testdata/<kind> in order.
func corpus(tb testing.TB, kind string) []sample {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", kind, "*.json"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("corpus(%q) = %v, %v, want files", kind, paths, err)
	}
	samples := make([]sample, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		samples[i] = sample{strings.TrimSuffix(filepath.Base(path), ".json"), text}
	}
	return samples
}

// problemsOf returns "pointer rule" for each problem of an error.
func problemsOf(tb testing.TB, err error) []string {
	tb.Helper()
	if !errors.Is(err, fault.Invalid) {
		tb.Fatalf("error = %v, want fault.Invalid", err)
	}
	e, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(e.Fields) == 0 {
		tb.Fatalf("error = %#v, want an InvalidError with fields", err)
	}
	list := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		list[i] = f.Pointer + " " + string(f.Rule)
	}
	return list
}

func TestParseAcceptsValidCorpus(t *testing.T) {
	t.Parallel()

	for _, s := range corpus(t, "valid") {
		if _, err := envelope.Parse(s.text); err != nil {
			t.Errorf("Parse(%s) = %v, want no error", s.name, err)
		}
	}
}

func TestParseRefusesInvalidCorpus(t *testing.T) {
	t.Parallel()
	const golden = "testdata/invalid.golden.json"
	got := map[string][]string{}
	for _, s := range corpus(t, "invalid") {
		_, err := envelope.Parse(s.text)
		if err == nil {
			t.Errorf("Parse(%s) = no error, want one", s.name)
			continue
		}
		got[s.name] = problemsOf(t, err)
	}

	if *envelope.Update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse of the invalid corpus (-want +got):\n%s", diff)
	}
}

func TestParseManyAgreesWithParseOnTheCorpus(t *testing.T) {
	t.Parallel()
	// These end the reading, so they cannot be in the list.
	var samples []sample
	for _, kind := range []string{"valid", "invalid"} {
		for _, s := range corpus(t, kind) {
			_, err := envelope.Parse(s.text)
			if err == nil || !slices.ContainsFunc(problemsOf(t, err), fatal) {
				samples = append(samples, s)
			}
		}
	}
	texts := make([]string, len(samples))
	for i, s := range samples {
		texts[i] = string(s.text)
	}

	items, err := envelope.ParseMany([]byte(`{"items":[` + strings.Join(texts, ",") + `]}`))

	if err != nil || len(items) != len(samples) {
		t.Fatalf("ParseMany = %d items, %v, want %d", len(items), err, len(samples))
	}
	for i, s := range samples {
		p, err := envelope.Parse(s.text)
		if diff := cmp.Diff(p, items[i].Proposal); diff != "" {
			t.Errorf("%s: ParseMany is not as Parse (-one +many):\n%s", s.name, diff)
		}
		if (err != nil) != (items[i].Err != nil) {
			t.Errorf("%s: ParseMany = %v, want %v", s.name, items[i].Err, err)
			continue
		}
		if err != nil {
			want := problemsOf(t, err)
			for j := range want {
				want[j] = "/items/" + strconv.Itoa(i) + want[j]
			}
			if diff := cmp.Diff(want, problemsOf(t, items[i].Err)); diff != "" {
				t.Errorf("%s: problems in a list (-want +got):\n%s", s.name, diff)
			}
		}
	}
}

func fatal(problem string) bool {
	return strings.HasSuffix(problem, " syntax") || strings.Count(problem, "/") > 32
}
