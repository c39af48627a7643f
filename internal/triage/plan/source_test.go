package plan_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// sourceTools returns the input schemas of the mail source's tools by name.
func sourceTools(t *testing.T) map[plan.Tool]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile("../../source/mail/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []struct {
		Name  plan.Tool       `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(raw, &tools); err != nil {
		t.Fatal(err)
	}
	byName := map[plan.Tool]json.RawMessage{}
	for _, tool := range tools {
		byName[tool.Name] = tool.Input
	}
	return byName
}

// TestPlannedArgumentsMatchTheSourcesSchema checks the arguments of every tool against
// the schema that the source of kind mail declares.
func TestPlannedArgumentsMatchTheSourcesSchema(t *testing.T) {
	t.Parallel()
	tools := sourceTools(t)
	long := strings.Repeat("x", 998)
	plain, extreme := target(), target()
	extreme.At.Location = mailbox.Location{Folder: long, Key: long}
	extreme.Message.MessageID = strings.Repeat("x", 999)

	for _, on := range []plan.Target{plain, extreme} {
		label, flag := decide.Want{Action: decide.Label}, decide.Want{Action: decide.Flag}
		archive, quarantine := decide.Want{Action: decide.Archive}, decide.Want{Action: decide.Quarantine}
		var proposals []plan.Proposal
		for _, wants := range [][]decide.Want{{label}, {flag}, {archive}, {quarantine}, {label, flag}, {label, archive}, {{Action: decide.Trash}}, {{Action: decide.Snooze}}, {{Action: decide.Unsubscribe}}} {
			p, skips := plan.Plan(wanting(classify.Receipts, wants...), on, config())
			if len(p) != 1 {
				t.Fatalf("Plan(%v) = %d proposals, and %v", wants, len(p), skips)
			}
			proposals = append(proposals, p...)
		}
		for _, p := range proposals {
			compiled, err := schema.Compile(tools[p.Tool])
			if err != nil {
				t.Fatalf("%s: %v", p.Tool, err)
			}
			args, err := p.Args()
			if err != nil {
				t.Fatal(err)
			}
			value, err := schema.Decode(args)
			if err != nil {
				t.Fatal(err)
			}
			if problems, err := compiled.Check(t.Context(), value); err != nil || len(problems) > 0 {
				t.Errorf("%s refuses %s: %v, %v", p.Tool, args, problems, err)
			}
		}
	}
}

// TestEveryActionHasATool checks that each row of the table of actions names a tool
// of the mail source, which is the one that a proposal of the action calls.
func TestEveryActionHasATool(t *testing.T) {
	t.Parallel()
	tools := sourceTools(t)
	if len(decide.Tools()) == 0 {
		t.Fatal("the table of actions is empty")
	}
	for action, tool := range decide.Tools() {
		if _, ok := tools[plan.Tool(tool)]; !ok {
			t.Errorf("the action %s has the tool %q, which the mail source does not have", action, tool)
		}
		p, _ := plan.Plan(wanting(classify.Receipts, decide.Want{Action: action}), target(), config())
		if len(p) == 1 && string(p[0].Tool) != tool {
			t.Errorf("the action %s is proposed as %s, and its row has %s", action, p[0].Tool, tool)
		}
	}
}

// TestRulesCoverTheSourcesSchema compares the rules of origins with the input
// of the mail source: a place without a rule could be filled from anywhere.
func TestRulesCoverTheSourcesSchema(t *testing.T) {
	t.Parallel()

	type object struct {
		Properties map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"properties"`
	}
	for tool, raw := range sourceTools(t) {
		var input object
		if err := json.Unmarshal(raw, &input); err != nil {
			t.Fatal(err)
		}
		places := map[string]bool{}
		for name, property := range input.Properties {
			places["/"+name] = true
			for inner := range property.Properties {
				places["/"+name+"/"+inner] = true
			}
		}
		for _, rule := range plan.Rules() {
			if slices.Contains(rule.Tools, tool) && !places[strings.TrimSuffix(rule.Pattern, "/*")] {
				t.Errorf("%s has no place %s", tool, rule.Pattern)
			}
		}
	}
}
