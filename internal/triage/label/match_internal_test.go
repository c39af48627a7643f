package label

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

func matched(d Definition, text string) Match {
	found, ok := newClassifier("l", d.normal(), nil, nil, nil).match(message{text: text})
	if !ok {
		return Match{}
	}
	return found
}

func TestWordsAndDescriptions(t *testing.T) {
	t.Parallel()
	investors := Definition{Description: "Mail from investors about fundraising", Words: []string{"Term  Sheet"}}
	for text, because := range map[string][]string{
		"The TERM\nsheet is attached":            {"term sheet"},
		"An investor asks about our fundraising": {"investors", "fundraising"},
		"An investor asks for lunch":             nil,
		"the sheet of this term":                 nil,
		"long-term sheets":                       nil,
		"":                                       nil,
		"\x00\xff\xfe":                           nil,
		strings.Repeat("term ", 100_000) + "term sheet 三": {"term sheet"},
	} {
		got := matched(investors, text)
		if !slices.Equal(got.Because, because) {
			t.Errorf("match(%.40q) = %+v, want because of %q", text, got, because)
		}
	}
	if got := matched(Definition{Words: []string{"請求書", "счёт"}}, "十月の請求書です"); len(got.Because) != 1 {
		t.Errorf("match of a phrase without spaces = %+v", got)
	}
}

func TestDefinitionsAreChecked(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	for name, d := range map[string]Definition{
		"empty": {}, "common words": {Description: "all the mail from them"}, "a letter": {Words: []string{"a"}}, "marks": {Words: []string{"!!"}},
		"a zero byte": {Words: []string{"a\x00b"}}, "no text": {Description: "\xff\xfe words"}, "many words": {Words: manyWords()},
		"a long description": {Description: strings.Repeat("long ", 200)}, "both": {For: []uuid.UUID{id}, Against: []uuid.UUID{id}},
	} {
		if d.normal().check() == nil {
			t.Errorf("check of %s accepts it", name)
		}
	}
	one, _ := Definition{Words: []string{"b", "A ", "b"}, Description: " x  y"}.normal().digest()
	two, _ := Definition{Words: []string{"a", "b"}, Description: "x y"}.normal().digest()
	if !slices.Equal(one, two) {
		t.Error("digest differs between spellings of one definition")
	}
	for _, name := range []string{"", "action", tag.AddContact, "mine", "Upper", "a b", "../x", strings.Repeat("a", 41)} {
		if ValidName(name, map[string]tag.Action{"mine": {}}) == nil {
			t.Errorf("ValidName(%q) accepts it", name)
		}
	}
	if err := ValidName("investors", nil); err != nil {
		t.Error(err)
	}
}

func manyWords() (all []string) {
	for i := range maxWords + 1 {
		all = append(all, "w"+strings.Repeat("x", i))
	}
	return all
}

// TestExamples measures classifiers of eight examples on the mail of the project's
// own fixture, whose categories stand for what an owner means by a label.
func TestExamples(t *testing.T) {
	t.Parallel()
	all := fixtureFeatures(t)
	var hits, wrong, missed int
	for category := range all {
		var yes, others, rest []classify.Features
		for other, features := range all {
			for i, f := range features {
				switch {
				case other == category && i < 8:
					yes = append(yes, f)
				case other == category:
					rest = append(rest, f)
				case i%2 == 0:
					others = append(others, f)
				}
			}
		}
		c := newClassifier(category, Definition{}, yes, nil, others)
		for _, f := range rest {
			if _, ok := c.match(message{features: f}); ok {
				hits++
			} else {
				missed++
			}
		}
		for other, features := range all {
			for i, f := range features {
				if _, ok := c.match(message{features: f}); ok && other != category && i%2 == 1 {
					wrong++
				}
			}
		}
	}
	precision, recall := share(hits, wrong), share(hits, missed)
	t.Logf("labels of eight examples on unseen messages: precision %.2f, recall %.2f (%d right, %d wrong, %d missed)", precision, recall, hits, wrong, missed)
	if precision < 0.85 || recall < 0.5 || math.IsNaN(precision) {
		t.Errorf("precision %.2f, recall %.2f", precision, recall)
	}
}

func share(a, b int) float64 { return float64(a) / float64(a+b) }

// fixtureFeatures returns the features of the fixture's messages by category.
func fixtureFeatures(t *testing.T) map[string][]classify.Features {
	t.Helper()
	m, err := classify.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	source, err := corpus.OwnSet(os.DirFS("../evaluate/testdata/fixture"), "fixture")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]classify.Features{}
	for _, e := range source.Examples {
		msg, about, found := classify.Read(e)
		all[e.Labels.Category] = append(all[e.Labels.Category], m.Features(msg, about, found))
	}
	return all
}
