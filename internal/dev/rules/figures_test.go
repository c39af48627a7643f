package rules_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// accuracy matches a share or a count of examples, such as .95, 0.872 or 3 of 64.
var accuracy = regexp.MustCompile(`(^|[\s(~])(1\.00|0?\.\d{2,3})\b|\b\d[\d,]* of \d`)

// TestFiguresNameTheirTraining checks that each row of figures about the models
// of triage names the mail that they were trained and tuned on: in a column of
// its own, in the heading of each column of figures, or in the paragraph above
// a table whose rows are alike.
func TestFiguresNameTheirTraining(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, glob := range []string{"README.md", "docs/triage*.md", "docs/reference/triage-figures.md", "internal/triage/classify/model.md", "internal/triage/evaluate/testdata/*/README.md"} {
		files, err := fs.Glob(root(), glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages, %v", glob, len(files), err)
		}
		for _, file := range files {
			rows, bad := untrained(read(t, file))
			found[file] = rows
			for _, row := range bad {
				t.Errorf("%s: no mail for training and tuning in the row %s", file, row)
			}
		}
	}
	if found["docs/reference/triage-figures.md"] == 0 || found["internal/triage/classify/model.md"] == 0 {
		t.Errorf("rows with figures: %v, want some in the page of figures and in the data sheet", found)
	}
}

// TestUntrainedRowsAreFound checks the check.
func TestUntrainedRowsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"| a | b |\n| --- | --- |\n| recall | .95 |\n":                                                    1,
		"Measured on mail.\n\n| a | b |\n| --- | --- |\n| moved | 3 of 64 |\n":                            1,
		"Trained and tuned on mail.\n\n| a | b |\n| --- | --- |\n| recall | .95 |\n":                      0,
		"| a | trained on x, tuned on y | b |\n| --- | --- | --- |\n| c | .95 | 1.00 |\n":                 1,
		"| a | trained on x, tuned on y |\n| --- | --- |\n| c | .95 |\n| d | – |\n":                       0,
		"| a | b | trained and tuned on |\n| --- | --- | --- |\n| c | .95 | mail |\n| d | .95 |  |\n":     1,
		"| a | b |\n| --- | --- |\n| version | 1.2.3 |\n| limit | 60 % |\n| place | 4.5 |\n| x | 0.5.1 |": 0,
	} {
		if _, got := untrained(text); len(got) != want {
			t.Errorf("untrained(%q) = %q, want %d rows", text, got, want)
		}
	}
}

// untrained returns the number of rows with figures, and those rows without the
// mail for training and tuning.
func untrained(text string) (rows int, bad []string) {
	named := func(s string) bool {
		s = strings.ToLower(s)
		return strings.Contains(s, "trained") && strings.Contains(s, "tuned")
	}
	var above, paragraph string
	var heads []string
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			heads = nil
			if line != "" {
				paragraph += line + " "
			} else if paragraph != "" {
				above, paragraph = paragraph, ""
			}
			continue
		case heads == nil:
			if paragraph != "" {
				above, paragraph = paragraph, ""
			}
			heads = cells
			continue
		}
		if !accuracy.MatchString(strings.Join(cells, " ")) {
			continue
		}
		rows++
		ok := named(above)
		for i, head := range heads {
			// A column of its own names it without figures.
			ok = ok || named(head) && i < len(cells) && strings.TrimSpace(cells[i]) != "" && !accuracy.MatchString(cells[i])
		}
		if !ok {
			ok = true
			for i, cell := range cells {
				ok = ok && (!accuracy.MatchString(cell) || i < len(heads) && named(heads[i]))
			}
		}
		if !ok {
			bad = append(bad, line)
		}
	}
	return rows, bad
}
