// Package breaking_test compares the API's document with the last released one
// and fails if a client of that release would no longer work. It does not judge
// additions.
package breaking_test

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oasdiff/oasdiff/checker"
	"github.com/oasdiff/oasdiff/diff"
	"github.com/oasdiff/oasdiff/load"
)

const (
	document = "../../schemas/openapi.yaml"
	baseline = "../../schemas/testdata/openapi-baseline.yaml"
)

var update = flag.Bool("update", false, "make the document the baseline")

func TestNoBreakingChanges(t *testing.T) {
	t.Parallel()
	if *update {
		if err := os.WriteFile(baseline, read(t, document), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	for _, change := range breakingChanges(t, read(t, baseline), read(t, document)) {
		t.Error(change)
	}
	if t.Failed() {
		t.Log("CONTRIBUTING.md says how to accept a breaking change")
	}
}

func TestBreakingChangesAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"path removed":       {"  /api/v1/me:\n", "  /api/v1/whoami:\n", "api-path-removed-without-deprecation"},
		"answer's field":     {"required: [items, next_cursor]", "required: [items]", "response-property-became-optional"},
		"required parameter": {"      operationId: getMe\n", "      operationId: getMe\n      parameters:\n        - {name: as, in: query, required: true, schema: {type: string}}\n", "new-required-request-parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := read(t, document)
			after := bytes.Replace(before, []byte(c.old), []byte(c.new), 1)
			if bytes.Equal(before, after) {
				t.Fatalf("the document does not contain %q", c.old)
			}

			got := breakingChanges(t, before, after)

			if !slices.ContainsFunc(got, func(change string) bool { return strings.Contains(change, c.want) }) {
				t.Errorf("breakingChanges() = %q, want %s among them", got, c.want)
			}
		})
	}
	if got := breakingChanges(t, read(t, document), read(t, document)); got != nil {
		t.Errorf("breakingChanges() of the same document = %q", got)
	}
}

// breakingChanges returns the changes that break clients of the first document,
// one line for each.
func breakingChanges(t *testing.T, before, after []byte) []string {
	t.Helper()
	changes, sources, err := diff.GetWithOperationsSourcesMap(diff.NewConfig(), parse(t, before), parse(t, after))
	if err != nil {
		t.Fatal(err)
	}
	config := checker.NewConfig(checker.GetAllChecks())
	var lines []string
	for _, change := range checker.CheckBackwardCompatibilityUntilLevel(config, changes, sources, checker.WARN) {
		lines = append(lines, change.SingleLineError(checker.NewDefaultLocalizer(), checker.ColorNever))
	}
	return lines
}

func parse(t *testing.T, text []byte) *load.SpecInfo {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return &load.SpecInfo{Url: "openapi.yaml", Spec: doc}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
