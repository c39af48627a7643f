package extract_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFindingsDecideNothing checks who reads findings: no code that decides about a
// cohort, a level or a move.
func TestFindingsDecideNothing(t *testing.T) {
	t.Parallel()
	var importers []string
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			if strings.HasSuffix(i.Path.Value, `/internal/triage/extract"`) {
				importers = append(importers, filepath.ToSlash(strings.TrimPrefix(path, "../../../")))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first three show findings, the other makes rows of them.
	if diff := cmp.Diff([]string{"internal/triage/brief/brief.go", "internal/triage/brief/store_found.go", "internal/triage/inspect/store_finding.go", "internal/triage/thread/finding.go"}, importers); diff != "" {
		t.Errorf("files that import extract (-want +got):\n%s", diff)
	}
	var queries []string
	files, _ := filepath.Glob("../../../db/queries/*.sql")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range strings.Split(string(text), "-- name: ")[1:] {
			if strings.Contains(q, "triage_findings") {
				queries = append(queries, q[:strings.IndexByte(q, ' ')])
			}
		}
	}
	slices.Sort(queries)
	if diff := cmp.Diff([]string{"TriageBriefFound", "TriageFindingList", "TriageFindingsInsert", "TriageMessageList", "TriageMessagePick"}, queries); diff != "" {
		t.Errorf("queries with findings (-want +got):\n%s", diff)
	}
}
