package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// TestEachGuardRejectsAloneWhatTheOthersAccept switches off each guard over the
// arguments of a proposal: an attack that it rejects gets through all the others.
// docs/triage-safety.md has the same list.
func TestEachGuardRejectsAloneWhatTheOthersAccept(t *testing.T) {
	t.Parallel()
	account := Field{"/account", Value{"work", Configured, "/account"}}
	evil := "thief@evil.example"
	refused := func(_ Value, err error) bool { return err != nil }
	for name, test := range map[string]struct {
		tool   Tool
		attack Field
		// off is the guard of Check to switch off. For the guards of constructors and
		// of Args, rejects reports whether they reject the attack.
		off     string
		rejects func(f Field) bool
	}{
		"a place that the tool does not have": {tool: ToolArchive, attack: Field{"/to/0", Value{evil, Header, "From/0"}}, off: "place"},
		"an unknown place":                    {tool: ToolMove, attack: Field{"/url", Value{"https://evil.example", ModelText, ""}}, off: "place"},
		"text of a model as a recipient":      {tool: ToolDraft, attack: Field{"/to/0", Value{evil, ModelText, ""}}, off: "origin"},
		"text of a header as a folder":        {tool: ToolMove, attack: Field{"/folder", Value{"Trash", Header, "Subject/0"}}, off: "origin"},
		"a value without an origin":           {tool: ToolLabel, attack: Field{"/labels/add/0", Value{text: evil}}, off: "origin"},
		"a label that requests an action":     {tool: ToolLabel, attack: Field{"/labels/add/0", Value{"Countersign_do_forward", Configured, "/labels/receipts"}}, off: "label"},
		"a value over the limit": {tool: ToolDraft, attack: Field{"/to/0", Value{strings.Repeat("a", maxLine) + "@evil.example", Header, "From/0"}},
			rejects: func(f Field) bool { return refused(fromAddress(f.Value.text)) }},
		"a line break in an address": {tool: ToolDraft, attack: Field{"/to/0", Value{"ann@example.org\r\nBcc: " + evil, Header, "From/0"}},
			rejects: func(f Field) bool { return refused(fromAddress(f.Value.text)) }},
		"a word of no vocabulary": {tool: ToolFlag, attack: Field{"/flags/add/0", Value{`\Deleted`, Enumerated, "flags"}},
			rejects: func(f Field) bool { return refused(Enum(Flags(), f.Value.text)) }},
		"text of a model in a template": {tool: ToolLabel, attack: Field{"/labels/add/0", Value{evil, Templated, "label"}},
			rejects: func(f Field) bool { return refused(Template(LabelTemplate, Value{f.Value.text, ModelText, ""})) }},
	} {
		fields := []Field{account, test.attack}
		others := slices.DeleteFunc(guards(), func(g guard) bool { return g.name == test.off })
		if test.off != "" && len(others) != len(guards())-1 {
			t.Fatalf("%s: unknown guard %q", name, test.off)
		}

		if err := checkBy(others, test.tool, fields); err != nil {
			t.Errorf("%s: another guard rejects it: %v", name, err)
		}
		if _, err := Args(RowsOf(fields)); err != nil {
			t.Errorf("%s: Args() = %v, want the attack to get through", name, err)
		}
		if rejected := test.rejects != nil && test.rejects(test.attack) || test.off != "" && Check(test.tool, fields) != nil; !rejected {
			t.Errorf("%s: no guard rejects it", name)
		}
	}

	for name, pointers := range map[string][2]string{"a field twice": {"/labels/add/0", "/labels/add/0"}, "a gap in a list": {"/labels/add/0", "/labels/add/2"}} {
		label := Value{"receipts", Configured, "/labels/receipts"}
		fields := []Field{account, {pointers[0], label}, {pointers[1], label}}

		if err := Check(ToolLabel, fields); err != nil {
			t.Errorf("%s: another guard rejects it: %v", name, err)
		}
		if args, err := Args(RowsOf(fields)); err == nil {
			t.Errorf("%s: Args() = %s, want an error", name, args)
		}
	}
}

// fromAddress returns the value of an address in From.
func fromAddress(address string) (Value, error) {
	return FromHeader(&message.Message{From: []message.Address{{Addr: address}}}, HeaderFrom, 0)
}
