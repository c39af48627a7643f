package actions

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func TestReadProposals(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"one":                {`{"a":1}`, []string{`{"a":1}`}},
		"an array":           {` [{"a":1}, {"a":2}] `, []string{`{"a":1}`, `{"a":2}`}},
		"a list":             {`{"items":[{"a":1},{"a":2}]}`, []string{`{"a":1}`, `{"a":2}`}},
		"lines":              {"{\"a\":1}\n\n{\"a\":2}\r\n", []string{`{"a":1}`, `{"a":2}`}},
		"as it was written":  {`{"a":1,"a":2.00}`, []string{`{"a":1,"a":2.00}`}},
		"no list of its own": {`{"items":[1],"tool":{}}`, []string{`{"items":[1],"tool":{}}`}},
		"an empty array":     {`[]`, nil},
	} {
		got, err := readProposals(strings.NewReader(tt.in))
		var texts []string
		for _, raw := range got {
			texts = append(texts, string(raw))
		}
		if diff := cmp.Diff(tt.want, texts); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, in := range []string{"", " \n", "{", `{"a":1} hunter2`, "1", `"hunter2"`} {
		if got, err := readProposals(strings.NewReader(in)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("readProposals(%q) = %s, %v, want an error without the value", in, got, err)
		}
	}
}

// FuzzReadProposals: what is read is JSON, and reading it again as lines gives
// the same.
func FuzzReadProposals(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Add("[{},{}]\n{\"items\":[1,[2]]}")
	f.Fuzz(func(t *testing.T, in string) {
		all, err := readProposals(strings.NewReader(in))
		if err != nil {
			return
		}
		var lines strings.Builder
		for _, raw := range all {
			if !json.Valid(raw) {
				t.Fatalf("%q is not JSON", raw)
			}
			if raw[0] != '{' || strings.Contains(string(raw), `"items"`) {
				return // a list in a list is unpacked once
			}
			lines.Write(raw)
			lines.WriteByte('\n')
		}
		again, err := readProposals(strings.NewReader(lines.String()))
		if diff := cmp.Diff(all, again); len(all) > 0 && (err != nil || diff != "") {
			t.Fatalf("read again: %v (-want +got):\n%s", err, diff)
		}
	})
}

// submitWith parses flags and returns the proposal that they are.
func submitWith(flags ...string) (json.RawMessage, error) {
	var f proposalFlags
	cmd := &cobra.Command{}
	f.add(&command.App{}, cmd)
	if err := cmd.ParseFlags(flags); err != nil {
		return nil, err
	}
	return f.proposal()
}

func TestProposalOfFlags(t *testing.T) {
	t.Parallel()
	before := time.Now()

	raw, err := submitWith("--tool=mail:send", `--args={"to":"x"}`, "--external-id=n", "--risk=high", "--not-before=90s", "--must-run-before=2026-02-03T04:05:06Z")
	if err != nil {
		t.Fatal(err)
	}

	got, err := envelope.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if at := got.Constraints.NotBefore; at.Before(before.Add(89*time.Second)) || at.After(time.Now().Add(91*time.Second)) {
		t.Errorf("not before %v", at)
	}
	got.Constraints.NotBefore = time.Time{}
	want := &envelope.Proposal{
		Type: "mcp.exec", ExternalID: "n", Risk: envelope.RiskHigh, Tool: envelope.Tool{Source: "mail", Name: "send"}, Args: json.RawMessage(`{"to":"x"}`),
		Constraints: envelope.Constraints{MustRunBefore: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
	for _, bad := range [][]string{
		{"--args={"}, {"--args=[]"}, {"--risk=some"}, {"--tool=a:"}, {"--not-before=soon"}, {"--must-run-before=-1h"}, {"--employee-id=x"},
	} {
		if raw, err := submitWith(append([]string{"--tool=a:b"}, bad...)...); err == nil {
			t.Errorf("proposal of %v is %s, want an error", bad, raw)
		}
	}
}

func TestNextBatch(t *testing.T) {
	t.Parallel()
	many := make([]json.RawMessage, envelope.MaxItems+1)
	for i := range many {
		many[i] = json.RawMessage("{}")
	}
	big := json.RawMessage(`"` + strings.Repeat("x", maxBatchBytes) + `"`)

	if got := len(nextBatch(many)); got != envelope.MaxItems {
		t.Errorf("a batch of small ones has %d, want %d", got, envelope.MaxItems)
	}
	if got := len(nextBatch([]json.RawMessage{big, big})); got != 1 {
		t.Errorf("a batch of large ones has %d, want 1", got)
	}
	if got := len(nextBatch(many[:3])); got != 3 {
		t.Errorf("a batch of three has %d", got)
	}
}
