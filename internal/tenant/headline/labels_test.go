package headline_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

// TestHeadlinesOfPublicServers checks that no headline of a call leaves out an argument that
// a person labelled as recipient, amount or destination, nor changes their order, however
// long the other arguments are.
func TestHeadlinesOfPublicServers(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"labels.txt", "labels_held_out.txt"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			calls, wrong := 0, 0
			for _, call := range labelled(t, file) {
				calls++
				line := headline.Of(call.args, nil, call.recipients)
				for i, name := range call.labels {
					at := strings.Index(line, name+" v")
					if at < 0 || call.after[i] && at < strings.Index(line, call.labels[i-1]+" v") {
						wrong++
						t.Logf("%s: %s is left out or in another place: %s", call.tool, name, line)
						break
					}
				}
			}
			t.Logf("%d of %d calls are wrong", wrong, calls)
			if wrong > 0 {
				t.Errorf("%d of %d headlines leave out or move what a person reads first", wrong, calls)
			}
		})
	}
}

type call struct {
	tool   string
	labels []string
	// after has the labels that must stand after the one before.
	after      map[int]bool
	args       json.RawMessage
	recipients []contact.Pattern
}

// labelled reads a file of labels. The arguments of its calls stand in alphabetical
// order, and those without a label are long.
func labelled(t *testing.T, file string) []call {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	server := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "[") {
			server = line
			continue
		}
		parts := strings.Split(line, "|")
		c := call{tool: server + strings.TrimSpace(parts[0]), after: make(map[int]bool)}
		for _, word := range strings.Fields(parts[1]) {
			if word == ">" {
				c.after[len(c.labels)] = true
				continue
			}
			c.labels = append(c.labels, word)
		}
		args, properties := make(map[string]string), make(map[string]any)
		for i, name := range c.labels {
			args[name], properties[name] = fmt.Sprintf("v%d", i), map[string]string{"type": "string"}
		}
		for _, name := range strings.Fields(parts[2]) {
			args[name], properties[name] = strings.Repeat("long text ", 20), map[string]string{"type": "string"}
		}
		if c.args, err = json.Marshal(args); err != nil {
			t.Fatal(err)
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		if c.recipients, err = contact.ParsePatterns(contact.InferRecipients(schema)); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}
