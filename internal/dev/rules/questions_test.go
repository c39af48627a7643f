package rules_test

import (
	"cmp"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kljensen/snowball"
)

// answered is the number of questions for which the first two results of a
// search have the answer. It only goes up.
const answered = 40

// questionWords are words of questions that name no subject.
const questionWords = " a an and are as at be can did do does for from get has have how i if in is it its many me my " +
	"now not of on or should so than that the their they this to what when where which who why will with without you your "

// TestQuestionsAreAnswered searches the pages for each question of a stranger,
// with BM25 over the page, its headings and its entry in the index.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	pages := docPages(t)
	var found int

	for line := range strings.Lines(read(t, "internal/dev/rules/testdata/questions.txt")) {
		want, question, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || want == "#" {
			continue
		}
		ranked := rank(pages, question)
		if slices.Contains(ranked[:2], want) {
			found++
			continue
		}
		t.Logf("%q is answered by %s at place %d, behind %q", strings.TrimSpace(question), want, slices.Index(ranked, want)+1, ranked[:2])
	}
	if found < answered {
		t.Errorf("%d questions are answered by one of the first two pages, want %d", found, answered)
	}
	t.Logf("%d questions are answered by one of the first two pages", found)
}

// docPages returns the terms of every page of docs: the text once, headings three
// times more, the line of the index that links to it three times.
func docPages(t *testing.T) map[string][]string {
	t.Helper()
	pages := make(map[string][]string)
	for _, glob := range []string{"docs/*.md", "docs/reference/*.md"} {
		files, err := fs.Glob(root(), glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if path.Base(file) == "README.md" {
				continue
			}
			text := read(t, file)
			headings := strings.Join(regexp.MustCompile(`(?m)^#+ .*$`).FindAllString(text, -1), "\n")
			pages[strings.TrimPrefix(file, "docs/")] = terms(text + strings.Repeat("\n"+headings, 3))
		}
	}
	for line := range strings.Lines(read(t, "docs/README.md")) {
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(line, -1) {
			if _, ok := pages[m[1]]; ok {
				pages[m[1]] = append(pages[m[1]], terms(strings.Repeat(line+"\n", 3))...)
			}
		}
	}
	return pages
}

// rank returns the pages by BM25, best first.
func rank(pages map[string][]string, question string) []string {
	const k1, b = 1.2, 0.75
	total := 0
	for _, all := range pages {
		total += len(all)
	}
	scores := make(map[string]float64)
	for _, term := range slices.Compact(slices.Sorted(slices.Values(terms(question)))) {
		counts := make(map[string]int)
		for page, all := range pages {
			for _, word := range all {
				if word == term {
					counts[page]++
				}
			}
		}
		idf := math.Log(1 + (float64(len(pages)-len(counts))+0.5)/(float64(len(counts))+0.5))
		for page, n := range counts {
			length := float64(len(pages[page])*len(pages)) / float64(total)
			scores[page] += idf * float64(n) * (k1 + 1) / (float64(n) + k1*(1-b+b*length))
		}
	}
	var names []string
	for page := range pages {
		names = append(names, page)
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(scores[y], scores[x]), strings.Compare(x, y))
	})
	return names
}

// terms returns the stems of the words of a text that may name a subject.
func terms(text string) []string {
	var all []string
	for _, word := range regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.ToLower(text), -1) {
		if strings.Contains(questionWords, " "+word+" ") {
			continue
		}
		if stem, err := snowball.Stem(word, "english", false); err == nil {
			all = append(all, stem)
		}
	}
	return all
}
