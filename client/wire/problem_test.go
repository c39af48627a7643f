package wire_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/client/wire"
)

// TestProblemCodesAreDocumented compares the constants, the list of them, the
// API's document and the page about the API.
func TestProblemCodesAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	found := func(pattern, text string) (all []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		slices.Sort(all)
		return all
	}
	var document struct {
		Components struct {
			Schemas map[string]struct{ Enum []string }
		}
	}
	if err := yaml.Unmarshal([]byte(read("..", "..", "schemas", "openapi.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(read("..", "..", "docs", "api.md"), "| code | means |")
	var page []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			page = append(page, found("`([a-z_]+)`", cells[1])...)
		}
	}
	slices.Sort(page)

	var want []string
	for _, code := range wire.ProblemCodes() {
		want = append(want, string(code))
	}
	for name, got := range map[string][]string{
		"the constants": found(`ProblemCode = "([a-z_]+)"`, read("problem.go")), "the document": document.Components.Schemas["ProblemCode"].Enum, "docs/api.md": page,
	} {
		if !slices.Equal(got, want) {
			t.Errorf("codes of %s = %v, want %v", name, got, want)
		}
	}
}
