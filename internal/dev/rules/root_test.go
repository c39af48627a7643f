package rules_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// rootFiles lists the files of the repository's root. Programs write their
// output below a folder that git ignores.
func rootFiles() []string {
	return []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "CONVENTIONS.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
		"doc.go", "go.mod", "go.sum", "sqlc.yaml",
	}
}

// strayFiles returns the files of a root that are not listed, without hidden
// files and those that the patterns of .gitignore match.
func strayFiles(tree fs.FS) ([]string, error) {
	ignored, err := fs.ReadFile(tree, ".gitignore")
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(tree, ".")
	var stray []string
	for _, entry := range entries {
		name := entry.Name()
		matched := slices.ContainsFunc(strings.Fields(string(ignored)), func(pattern string) bool {
			ok, _ := path.Match(strings.TrimPrefix(pattern, "/"), name) // git has read the pattern
			return ok
		})
		if !entry.IsDir() && !strings.HasPrefix(name, ".") && !matched && !slices.Contains(rootFiles(), name) {
			stray = append(stray, name)
		}
	}
	return stray, err
}

// resultFiles returns the files with results of a measurement in a tree. They
// belong below a folder named results, which git ignores.
func resultFiles(tree fs.FS) (found []string, err error) {
	err = fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{"results", "node_modules"}, name) || strings.HasPrefix(name, ".") && name != "."):
			return fs.SkipDir
		case !entry.IsDir() && name == "results.jsonl":
			found = append(found, file)
		}
		return nil
	})
	return found, err
}

func TestResultsAreBelowIgnoredFolders(t *testing.T) {
	t.Parallel()

	found, err := resultFiles(root())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		t.Errorf("%s holds results of a measurement; write them below a folder named results", file)
	}
}

func TestResultFiles(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"bench/results.jsonl": {}, "bench/results/results.jsonl": {}, "bench/main.go": {}, "results.jsonl": {}}

	found, err := resultFiles(tree)

	if want := []string{"bench/results.jsonl", "results.jsonl"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("resultFiles() = %q, %v, want %q", found, err, want)
	}
}

func TestRootHoldsListedFiles(t *testing.T) {
	t.Parallel()

	stray, err := strayFiles(root())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stray {
		t.Errorf("%s is not a file of the root; write it below a folder that git ignores, or list it in rootFiles", name)
	}
}

func TestStrayFiles(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		".gitignore":    {Data: []byte("/bin/\n*.out\n")},
		"README.md":     {},
		"cpu.out":       {},
		"results.jsonl": {},
		"bench/main.go": {},
	}

	stray, err := strayFiles(tree)

	if err != nil || !slices.Equal(stray, []string{"results.jsonl"}) {
		t.Errorf("strayFiles() = %q, %v, want results.jsonl", stray, err)
	}
}
