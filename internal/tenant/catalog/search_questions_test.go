package catalog_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// serverTools reads the tools of testdata/servers.txt by their server.
func serverTools(t testing.TB) map[string][]source.Tool {
	t.Helper()
	raw, err := os.ReadFile("testdata/servers.txt")
	if err != nil {
		t.Fatal(err)
	}
	servers := make(map[string][]source.Tool)
	server := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			server = strings.Trim(line, "[]")
		default:
			parts := strings.Split(line, "|")
			properties := make(map[string]any)
			for _, name := range strings.Fields(parts[2]) {
				properties[name] = map[string]string{"type": "string"}
			}
			schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
			if err != nil {
				t.Fatal(err)
			}
			servers[server] = append(servers[server], source.Tool{Name: strings.TrimSpace(parts[0]), Description: strings.TrimSpace(parts[1]), InputSchema: schema})
		}
	}
	return servers
}

// TestSearchAnswersQuestions asks questions as people do about the tools of
// public MCP servers. At least 95 in 100 must have an expected tool among the
// first three.
func TestSearchAnswersQuestions(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for server, tools := range serverTools(t) {
		s.Put(tenanttest.Builtin(server))
		s.List(server, tools...)
	}
	catalog := s.snapshot()
	all := catalog.Tools()
	raw, err := os.ReadFile("testdata/questions.txt")
	if err != nil {
		t.Fatal(err)
	}

	asked, found := 0, 0
	for line := range strings.Lines(string(raw)) {
		question, expected, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		asked++
		got := keys(catalog.Search(all, question))
		first := got[:min(len(got), 3)]
		if slices.ContainsFunc(strings.Fields(expected), func(want string) bool { return slices.Contains(first, want) }) {
			found++
			continue
		}
		t.Logf("%q finds %q, not %s", question, got[:min(len(got), 6)], expected)
	}

	if asked < 65 || found*100 < asked*95 {
		t.Errorf("%d of %d questions are answered by the first three tools, want 95 in 100", found, asked)
	}
}
