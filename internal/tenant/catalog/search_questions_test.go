package catalog_test

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// serverTools reads the tools in a file of testdata by server.
func serverTools(t testing.TB, file string) map[string][]source.Tool {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
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

// adapterTools reads the tools of the adapters of some kinds of source.
func adapterTools(t testing.TB, kinds ...string) map[string][]source.Tool {
	t.Helper()
	sources := make(map[string][]source.Tool)
	for _, kind := range kinds {
		raw, err := os.ReadFile("../../source/" + kind + "/tools.json")
		if err != nil {
			t.Fatal(err)
		}
		var listed []struct {
			Name, Description string
			Input             json.RawMessage
		}
		if err := json.Unmarshal(raw, &listed); err != nil {
			t.Fatal(err)
		}
		for _, tool := range listed {
			sources[kind] = append(sources[kind], source.Tool{Name: tool.Name, Description: tool.Description, InputSchema: tool.Input})
		}
	}
	return sources
}

// half returns the half of servers_halves.txt to which a server belongs. Search
// may be tuned only on half 0; half 1 is held out.
func half(server string) int {
	sum := sha256.Sum256([]byte(server))
	return int(sum[1] % 2)
}

// TestSearchAnswersQuestions searches with people's questions about the tools of
// public MCP servers and of adapters. Of the two halves of servers_halves.txt,
// search answered by the first three tools, before it was tuned on one of them,
// 45 of 56 questions about that half and 43 of 62 about the other; afterwards 51
// and 43, and by the first tool 44 and 33 (before, 38 and 29). The questions of
// questions_twelve.txt were committed before their first search; search is not
// tuned on their servers.
func TestSearchAnswersQuestions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// servers and questions are files of testdata.
		servers, questions string
		// only are the servers in the catalog; none means all. adapters are
		// additional kinds of source.
		only, adapters []string
		// halves are the halves of the servers in the catalog; none means both.
		halves []int
		// first and firstThree are the numbers of questions for which an
		// expected tool must be in that place.
		asked, first, firstThree int
	}{
		"ten servers":                 {servers: "servers.txt", questions: "questions.txt", asked: 101, first: 94, firstThree: 101},
		"six of them":                 {servers: "servers.txt", questions: "questions_tuned.txt", only: []string{"filesystem", "memory", "github", "everything", "thinking", "fetch"}, asked: 25, first: 20, firstThree: 24},
		"four of them":                {servers: "servers.txt", questions: "questions_held_out.txt", only: []string{"notion", "playwright", "git", "slack"}, adapters: []string{"linear", "sentry", "mail"}, asked: 25, first: 21, firstThree: 24},
		"eight other servers":         {servers: "servers_open.txt", questions: "questions_open.txt", asked: 68, first: 51, firstThree: 62},
		"six more":                    {servers: "servers_first.txt", questions: "questions_first.txt", asked: 25, first: 19, firstThree: 24},
		"an eighth six":               {servers: "servers_eighth.txt", questions: "questions_eighth.txt", asked: 25, first: 20, firstThree: 22},
		"a seventh six":               {servers: "servers_seventh.txt", questions: "questions_seventh.txt", asked: 25, first: 17, firstThree: 24},
		"a sixth six":                 {servers: "servers_sixth.txt", questions: "questions_sixth.txt", asked: 25, first: 23, firstThree: 24},
		"a fifth six":                 {servers: "servers_fifth.txt", questions: "questions_fifth.txt", asked: 25, first: 21, firstThree: 24},
		"a fourth six":                {servers: "servers_fourth.txt", questions: "questions_fourth.txt", asked: 25, first: 19, firstThree: 25},
		"a third six":                 {servers: "servers_third.txt", questions: "questions_third.txt", asked: 25, first: 19, firstThree: 24},
		"the tuned half of twenty":    {servers: "servers_halves.txt", questions: "questions_halves.txt", halves: []int{0}, asked: 56, first: 44, firstThree: 51},
		"the held-out half of twenty": {servers: "servers_halves.txt", questions: "questions_halves.txt", halves: []int{1}, asked: 62, first: 33, firstThree: 43},
		"twelve more":                 {servers: "servers_twelve.txt", questions: "questions_twelve.txt", asked: 60, first: 28, firstThree: 40},
		"another six":                 {servers: "servers_second.txt", questions: "questions_second.txt", asked: 25, first: 21, firstThree: 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			servers := serverTools(t, test.servers)
			maps.DeleteFunc(servers, func(server string, _ []source.Tool) bool {
				return test.only != nil && !slices.Contains(test.only, server) || test.halves != nil && !slices.Contains(test.halves, half(server))
			})
			maps.Copy(servers, adapterTools(t, test.adapters...))
			for server, tools := range servers {
				s.Put(tenanttest.Builtin(server))
				s.List(server, tools...)
			}
			asked, first, firstThree := ask(t, s.snapshot(), test.questions, func(server string) bool {
				return test.halves == nil || slices.Contains(test.halves, half(server))
			})

			if asked != test.asked || first < test.first || firstThree < test.firstThree {
				t.Errorf("%d questions, %d answered by the first tool, %d by the first three, want %d, %d, %d",
					asked, first, firstThree, test.asked, test.first, test.firstThree)
			}
			t.Logf("%d questions, %d answered by the first tool, %d by the first three", asked, first, firstThree)
		})
	}
}

// ask returns the number of questions in a file about some servers, and the
// numbers of those with an expected tool in the first place and among the first
// three. A question is about the server of its first expected tool.
func ask(t *testing.T, c *catalog.Catalog, file string, about func(server string) bool) (asked, first, firstThree int) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all := c.Tools()
	for line := range strings.Lines(string(raw)) {
		question, expected, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if server, _, _ := strings.Cut(expected, ":"); !ok || !about(server) {
			continue
		}
		asked++
		got := keys(c.Search(all, question))
		at := slices.IndexFunc(got, func(key string) bool { return slices.Contains(strings.Fields(expected), key) })
		if len(got) > 0 && strings.Contains(got[0], "delete") && !strings.Contains(expected, "delete") {
			t.Errorf("%q finds %s first, which destroys", question, got[0])
		}
		switch {
		case at == 0:
			first++
			firstThree++
		case at == 1 || at == 2:
			firstThree++
			t.Logf("%q finds %q first, then %s", question, got[:at], expected)
		default:
			t.Logf("%q finds %q, not %s", question, got[:min(len(got), 6)], expected)
		}
	}
	return asked, first, firstThree
}
