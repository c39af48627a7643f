package actions

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestProposalOfFlags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := proposalFlags{tool: "mail:send", args: `{"to":"x"}`, externalID: "n", risk: "high", notBefore: "90s", mustRunBefore: "2026-02-03T04:05:06Z"}

	raw, err := f.proposal(now)
	if err != nil {
		t.Fatal(err)
	}

	got, err := envelope.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := &envelope.Proposal{
		Type: "mcp.exec", ExternalID: "n", Risk: envelope.RiskHigh, Tool: envelope.Tool{Source: "mail", Name: "send"}, Args: json.RawMessage(`{"to":"x"}`),
		Constraints: envelope.Constraints{NotBefore: now.Add(90 * time.Second), MustRunBefore: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
	for _, bad := range []proposalFlags{
		{tool: "a:b", args: "{"}, {tool: "a:b", args: "[]"}, {tool: "a:b", args: "{}", risk: "some"}, {tool: "a:", args: "{}"},
		{tool: "a:b", args: "{}", notBefore: "soon"}, {tool: "a:b", args: "{}", mustRunBefore: "-1h"},
	} {
		_, err := bad.proposal(now)
		if _, ok := errors.AsType[*command.UsageError](err); !ok {
			t.Errorf("proposal of %+v: %v, want wrong usage", bad, err)
		}
	}
}

func TestNextLot(t *testing.T) {
	t.Parallel()
	many := make([]json.RawMessage, envelope.MaxItems+1)
	for i := range many {
		many[i] = json.RawMessage("{}")
	}
	big := json.RawMessage(`"` + strings.Repeat("x", maxLot) + `"`)

	if got := len(nextLot(many)); got != envelope.MaxItems {
		t.Errorf("a lot of small ones has %d, want %d", got, envelope.MaxItems)
	}
	if got := len(nextLot([]json.RawMessage{big, big})); got != 1 {
		t.Errorf("a lot of large ones has %d, want 1", got)
	}
	if got := len(nextLot(many[:3])); got != 3 {
		t.Errorf("a lot of three has %d", got)
	}
}
