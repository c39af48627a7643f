package wire_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/client/wire"
)

// TestProblemCodesAreListed compares the constants, the list of them and the
// API's document.
func TestProblemCodesAreListed(t *testing.T) {
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
	var want []string
	for _, code := range wire.ProblemCodes() {
		want = append(want, string(code))
	}
	for name, got := range map[string][]string{
		"the constants": found(`ProblemCode = "([a-z_]+)"`, read("problem.go")), "the document": document.Components.Schemas["ProblemCode"].Enum,
	} {
		if !slices.Equal(got, want) {
			t.Errorf("codes of %s = %v, want %v", name, got, want)
		}
	}
}

var update = flag.Bool("update", false, "rewrite docs/reference/errors.md")

// TestProblemCodesAreDocumented compares docs/reference/errors.md with the
// comments of the codes.
func TestProblemCodesAreDocumented(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "reference", "errors.md")
	source, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	var same []string
	var rows strings.Builder
	for _, m := range regexp.MustCompile(`((?:\t// .*\n)*)\tCode\w+ +ProblemCode = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		_, meaning, ok := strings.Cut(strings.Join(strings.Fields(strings.ReplaceAll(m[1], "//", "")), " "), " means that ")
		if !ok {
			same = append(same, "`"+m[2]+"`")
			continue
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", m[2], strings.TrimSuffix(meaning, "."))
	}
	want := "# Error codes\n\nGenerated from `client/wire` by `go test ./client/wire -update`. Every problem that the API answers with has a `code`\n" +
		"([problems](../api.md#problems)). In Go, they are constants of `client/wire`. Treat an unknown code as the problem's type.\n\n" +
		"| code | meaning |\n| --- | --- |\n" + rows.String() + "\nThese repeat the problem's type: " + strings.Join(same, ", ") + ".\n"

	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the comments; go test -update rewrites it (-want +got):\n%s", page, diff)
	}
}
