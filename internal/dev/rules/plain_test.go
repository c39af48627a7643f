package rules_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// habit is a pattern that plain English has rarely, and the most that a thousand
// lines of comments, or the messages of the whole module, may have of it.
type habit struct {
	pattern *regexp.Regexp
	limit   float64
	instead string
}

// habits are counted in comments. The limits only go down.
func habits() map[string]habit {
	return map[string]habit{
		"clause as a noun": {
			regexp.MustCompile(`(?i)\bwhat (is|was|are|were|the|a|an|it|its|they|has|had|have|this|that|each|one|all)\b`), 3.4, "a noun: the default, metadata, the unresolved calls",
		},
		"speech of things":  {regexp.MustCompile(`(?i)\b(says|tells)\b`), 1.3, "returns, reports whether, holds, is"},
		"word of old books": {regexp.MustCompile(`(?i)\b(besides?|anew|whoever|whatever|so many|lies|lay)\b`), 1.5, "next to, again, anyone who, any, many, is in"},
	}
}

// denials are counted in messages, in all of them together.
var denials = habit{regexp.MustCompile(`(?i)\b(is|are) (no|none|nothing|nobody)\b`), 4, `the problem in the field's words: unknown operation "x", invalid JWKS`}

// usage is the number of times that a package has a habit.
type usage struct {
	pkg          string
	found, lines int
	first        string
}

// TestEnglishIsPlain counts habits in the comments and the messages of all modules.
func TestEnglishIsPlain(t *testing.T) {
	t.Parallel()
	r, err := open(root())
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range habits() {
		found, lines, worst := countComments(r, h.pattern)
		if rate := float64(found) * 1000 / float64(lines); rate > h.limit {
			t.Errorf("%s: %.1f in 1,000 lines of comments, want at most %g; write %s. The packages with most:\n%s", name, rate, h.limit, h.instead, worst)
		}
	}
	if found, worst := countMessages(r, denials.pattern); float64(found) > denials.limit {
		t.Errorf("%d messages deny, want at most %g; write %s. The packages with most:\n%s", found, denials.limit, denials.instead, worst)
	}
}

// TestEnglishCanFail counts a module that has each habit.
func TestEnglishCanFail(t *testing.T) {
	t.Parallel()
	r, err := parse(map[string]string{"a/a.go": "// Package a says what\n// is asked anew.\npackage a\n\nvar message = `2 is no number`\n"})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range habits() {
		found, lines, worst := countComments(r, h.pattern)
		if found != 1 || lines != 2 || !strings.Contains(worst, "1  a, 2 lines of comments (a/a.go:1") {
			t.Errorf("%s: found %d in %d lines, want 1 in 2; worst:\n%s", name, found, lines, worst)
		}
	}
	if found, worst := countMessages(r, denials.pattern); found != 1 || !strings.Contains(worst, "a/a.go:5") {
		t.Errorf("found %d messages, want 1; worst:\n%s", found, worst)
	}
}

// countComments counts a pattern in comments. worst lists the ten packages that
// have most of it.
func countComments(r repo, pattern *regexp.Regexp) (found, lines int, worst string) {
	by := make(map[string]*usage)
	for _, f := range r.files {
		if f.generated {
			continue
		}
		for _, group := range f.tree.Comments {
			text := strings.TrimSuffix(group.Text(), "\n")
			if text == "" {
				continue
			}
			// A pattern may be broken over two lines.
			n, height := len(pattern.FindAllString(strings.ReplaceAll(text, "\n", " "), -1)), strings.Count(text, "\n")+1
			found, lines = found+n, lines+height
			r.note(by, f.pkg, group.Pos(), n, height)
		}
	}
	return found, lines, mostOf(by)
}

// countMessages counts the strings outside tests that have a pattern.
func countMessages(r repo, pattern *regexp.Regexp) (found int, worst string) {
	by := make(map[string]*usage)
	for _, f := range r.files {
		if f.generated || f.test {
			continue
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && pattern.MatchString(text.Value) {
				found++
				r.note(by, f.pkg, text.Pos(), 1, 0)
			}
			return true
		})
	}
	return found, mostOf(by)
}

func (r repo) note(by map[string]*usage, pkg string, at token.Pos, n, lines int) {
	u := by[pkg]
	if u == nil {
		u = &usage{pkg: pkg}
		by[pkg] = u
	}
	if u.found == 0 && n > 0 {
		u.first = r.at(at, "the first")
	}
	u.found, u.lines = u.found+n, u.lines+lines
}

// mostOf lists the ten packages with the highest counts.
func mostOf(by map[string]*usage) string {
	all := slices.SortedFunc(maps.Values(by), func(a, b *usage) int {
		return cmp.Or(cmp.Compare(b.found, a.found), strings.Compare(a.pkg, b.pkg))
	})
	var list strings.Builder
	for _, u := range all[:min(10, len(all))] {
		fmt.Fprintf(&list, "%5d  %s, %d lines of comments (%s)\n", u.found, u.pkg, u.lines, u.first)
	}
	return list.String()
}
