package rules_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// An area is a part of the project with a budget of hand-written lines.
type area struct {
	name    string
	folders []string
	// budget bounds the lines. A commit that raises it gives the purpose of the lines,
	// and the code that they replace.
	budget int
}

// areas lists the parts of the project; the longest folder that holds a file counts.
func areas() []area {
	return []area{
		{"the life of an action", []string{"envelope", "internal/action", "internal/audit", "internal/worker"}, 22960},
		{"tenants", []string{"internal/tenant"}, 16700},
		{"sources", []string{"internal/source", "internal/connection"}, 11900},
		{"mail and triage", []string{"internal/mail", "internal/triage"}, 45500},
		{"the server and its clients", []string{"client", "internal/server", "internal/insight"}, 28500},
		{"the command line", []string{"internal/cli"}, 16400},
		{"the page", []string{"web"}, 25850},
		{"the database", []string{"db", "internal/postgres"}, 15540},
		{"what all share", []string{".", "internal", "schemas"}, 7500},
		{"programs and development", []string{"cmd", "internal/dev", "examples", "deploy", "tools"}, 4200},
		{"benchmarks", []string{"bench"}, 12870},
	}
}

// areaOf returns the index of the area of a file in a folder; -1 for none.
func areaOf(folder string) int {
	found, longest := -1, -1
	for i, a := range areas() {
		for _, f := range a.folders {
			if (f == "." && folder == "." || within(folder, f)) && len(f) > longest {
				found, longest = i, len(f)
			}
		}
	}
	return found
}

// counted reports whether a file has hand-written lines: Go, TypeScript and SQL,
// except for tests and generated files.
func counted(file, text string) bool {
	switch path.Ext(file) {
	case ".go":
		test := strings.HasSuffix(file, "_test.go") || isHelper(path.Dir(file)) || strings.Contains(file, "test/")
		return !test && !strings.Contains(text, "// Code generated ")
	case ".ts", ".tsx":
		return within(path.Dir(file), "web/src") && !strings.Contains(file, ".test.ts") && !strings.Contains(text, "auto-generated")
	case ".sql":
		return true
	}
	return false
}

// countLines returns the hand-written lines of every area.
func countLines(tree fs.FS) ([]int, error) {
	lines := make([]int, len(areas()))
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		hidden := file != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_"))
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || name == "testdata" || name == "node_modules" || name == "bin"):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil || !counted(file, string(text)) {
			return err
		}
		at := areaOf(path.Dir(file))
		if at < 0 {
			return fmt.Errorf("%s is in no area; add its folder to areas() in internal/dev/rules", file)
		}
		lines[at] += strings.Count(string(text), "\n")
		return nil
	})
	return lines, err
}

// margin bounds the lines that a budget may be above the count.
const margin = 500

func TestAreasKeepTheirBudget(t *testing.T) {
	t.Parallel()
	document := read(t, "docs/reference/size.md")

	lines, err := countLines(root())

	if err != nil {
		t.Fatal(err)
	}
	for i, a := range areas() {
		if lines[i] > a.budget {
			t.Errorf("%s: %d lines, more than the budget of %d; remove as many, or raise the budget and give the reason in the commit", a.name, lines[i], a.budget)
		}
		if lines[i] < a.budget-margin {
			t.Errorf("%s: %d lines; lower the budget of %d", a.name, lines[i], a.budget)
		}
		row := fmt.Sprintf("| %s | `%s` | %d |", a.name, strings.Join(a.folders, "`, `"), a.budget)
		if !strings.Contains(document, row) {
			t.Errorf("docs/reference/size.md lacks the row %s", row)
		}
	}
}
