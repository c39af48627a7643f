package rules_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeGo holds the Go of the README to a test that runs it against a real
// server.
func TestReadmeGo(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	example := squeeze(read(t, "internal/dev/client_test.go"))

	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of Go, want 1", len(blocks))
	}
	if !strings.Contains(example, squeeze(blocks[0][1])) {
		t.Error("the Go of README.md is not in internal/dev/client_test.go; change both")
	}
}

// TestReadmeLinks follows every link of the documents to a file and its heading.
func TestReadmeLinks(t *testing.T) {
	t.Parallel()
	pages := []string{"README.md", "CONVENTIONS.md", "CHANGELOG.md"}
	for _, glob := range []string{"docs/*.md", "docs/reference/*.md", "docs/adr/*.md", "deploy/*/README.md"} {
		found, err := fs.Glob(root(), glob)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)

	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := fs.Stat(root(), target); err != nil {
				t.Errorf("%s links to the missing file %s", page, m[1])
			} else if m[2] != "" && !slices.Contains(anchors(read(t, target)), m[2]) {
				t.Errorf("%s links to the missing heading %s#%s", page, m[1], m[2])
			}
		}
	}
}

// anchors returns the fragments of a page's headings as GitHub writes them.
func anchors(page string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}

// root returns the repository's files.
func root() fs.FS { return os.DirFS("../../..") }

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(root(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
