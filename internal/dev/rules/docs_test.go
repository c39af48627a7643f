package rules_test

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
)

// section returns the text of a document from a heading to the next heading of
// the same or a higher level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	var lines []string
	for line := range strings.Lines(rest) {
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		if marks > 0 && marks <= level {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// matches returns the first group of every match of a pattern in the files
// that a glob matches, sorted, each once.
func matches(t *testing.T, glob, pattern string) []string {
	t.Helper()
	files, err := fs.Glob(root(), glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob(%q) = %q, %v, want files", glob, files, err)
	}
	var found []string
	for _, file := range files {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestDocumentsAreIndexed(t *testing.T) {
	t.Parallel()
	for index, globs := range map[string][]string{
		"docs/README.md":     {"docs/*.md", "docs/reference/*.md"},
		"docs/adr/README.md": {"docs/adr/*.md"},
	} {
		listed := read(t, index)
		for _, glob := range globs {
			pages, err := fs.Glob(root(), glob)
			if err != nil || len(pages) == 0 {
				t.Fatalf("Glob(%q) = %q, %v, want pages", glob, pages, err)
			}
			for _, page := range pages {
				link := strings.TrimPrefix(page, path.Dir(index)+"/")
				if link != "README.md" && !strings.Contains(listed, "]("+link+")") {
					t.Errorf("%s has no link to %s", index, link)
				}
			}
		}
	}
}

// TestReferenceListsTables compares the tables of the reference with the migrations:
// those of actions and of the record are all on the page, and no others than the
// migrations make.
func TestReferenceListsTables(t *testing.T) {
	t.Parallel()
	listed := section(t, "docs/reference/database.md", "## Tables")
	made := matches(t, "db/migrations/*.sql", `CREATE TABLE (\w+) \(`)

	for _, m := range regexp.MustCompile(`(?m)^\| (`+"`[^|]*`"+`) \|`).FindAllStringSubmatch(listed, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			if name = strings.Trim(name, "`"); name != "triage_…" && !slices.Contains(made, name) {
				t.Errorf("docs/reference/database.md lists the table %s, which no migration makes", name)
			}
		}
	}
	for _, table := range matches(t, "db/migrations/0000[6-8]_*.sql", `CREATE TABLE (\w+) \(`) {
		if !strings.Contains(listed, "`"+table+"`") {
			t.Errorf("docs/reference/database.md lists no table %s", table)
		}
	}
}

func TestReferenceListsTriggers(t *testing.T) {
	t.Parallel()
	listed := section(t, "docs/reference/database.md", "## Triggers")

	for _, table := range matches(t, "db/migrations/*.sql", `(?s)CREATE TRIGGER \w+\s.*?\bON (\w+)`) {
		if !strings.Contains(listed, "`"+table+"`") {
			t.Errorf("docs/reference/database.md lists no trigger of the table %s", table)
		}
	}
}

func TestReferenceListsJobs(t *testing.T) {
	t.Parallel()
	listed := section(t, "docs/reference/database.md", "## Background jobs")

	for _, job := range matches(t, "internal/worker/*.go", `Kind\(\) string \{ return "countersign_(\w+)" \}`) {
		if !strings.Contains(listed, "| `"+job+"` |") {
			t.Errorf("docs/reference/database.md lists no job %s", job)
		}
	}
}

func TestReferenceListsPackages(t *testing.T) {
	t.Parallel()
	listed := read(t, "docs/reference/packages.md")
	r, err := open(root())
	if err != nil {
		t.Fatal(err)
	}

	for pkg := range r.packages() {
		name := path.Base(pkg)
		perNoun := within(pkg, "internal/cli") || within(pkg, "internal/server/rest")
		if within(pkg, "internal") && !perNoun && !isHelper(pkg) && !regexp.MustCompile(`\b`+name+`\b`).MatchString(listed) {
			t.Errorf("docs/reference/packages.md does not name the package %s", pkg)
		}
	}
}

// TestDocsAreShort bounds the words of the pages, without decisions and reference.
func TestDocsAreShort(t *testing.T) {
	t.Parallel()
	const most = 27000
	pages, err := fs.Glob(root(), "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("Glob() = %q, %v, want pages", pages, err)
	}
	var count int
	for _, page := range pages {
		count += len(strings.Fields(read(t, page)))
	}
	if count > most {
		t.Errorf("the pages of docs have %d words, more than %d; cut as many as you add", count, most)
	}
}

// TestGlossaryListsScopes compares the scopes of the glossary with those of the
// contract that the API serves.
func TestGlossaryListsScopes(t *testing.T) {
	t.Parallel()
	listed := section(t, "docs/glossary.md", "## People and rights")

	var want []string
	err := fs.WalkDir(root(), "schemas", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".yaml") {
			for _, m := range regexp.MustCompile(`x-scope: (\S+)`).FindAllStringSubmatch(read(t, name), -1) {
				want = append(want, m[1])
			}
		}
		return err
	})
	if err != nil || len(want) == 0 {
		t.Fatalf("found no scopes in schemas: %v", err)
	}
	for _, scope := range want {
		if !strings.Contains(listed, "`"+scope+"`") {
			t.Errorf("docs/glossary.md does not list the scope %s", scope)
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_]+:[a-z_]+)`").FindAllStringSubmatch(listed, -1) {
		if !slices.Contains(want, m[1]) {
			t.Errorf("docs/glossary.md lists the scope %s, which no operation needs", m[1])
		}
	}
}

// TestGlossaryListsPhases compares the phases of the glossary with the code's.
func TestGlossaryListsPhases(t *testing.T) {
	t.Parallel()
	var listed, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(section(t, "docs/glossary.md", "### Phase"), -1) {
		listed = append(listed, m[1])
	}
	for _, phase := range envelope.Phases() {
		want = append(want, string(phase))
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("docs/glossary.md lists the phases %q, want %q", listed, want)
	}
}

// TestDocsArePlain counts the habits of comments in the pages, in a thousand words.
// The limits only go down.
func TestDocsArePlain(t *testing.T) {
	t.Parallel()
	pages, err := fs.Glob(root(), "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("Glob() = %q, %v, want pages", pages, err)
	}
	var text strings.Builder
	for _, page := range append(pages, "README.md") {
		text.WriteString(read(t, page) + "\n")
	}

	for name, limit := range map[string]float64{"clause as a noun": 0.1, "speech of things": 0, "word of old books": 0} {
		h := habits()[name]
		found := h.pattern.FindAllString(squeeze(text.String()), -1)
		if rate := float64(len(found)) * 1000 / float64(len(strings.Fields(text.String()))); rate > limit {
			t.Errorf("%s: %.2f in 1,000 words of docs, want at most %g; write %s. Found: %q", name, rate, limit, h.instead, found)
		}
	}
}
