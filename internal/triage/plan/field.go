package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// Tool is the name of a tool at the source of mail.
type Tool string

// The tools that proposals may name.
const (
	ToolLabel       Tool = "message.label"
	ToolFlag        Tool = "message.flag"
	ToolArchive     Tool = "message.archive"
	ToolMove        Tool = "message.move"
	ToolTrash       Tool = "message.trash"
	ToolSnooze      Tool = "message.snooze"
	ToolUnsubscribe Tool = "message.unsubscribe"
	ToolDraft       Tool = "message.draft"
	ToolAway        Tool = "message.away"
)

// Patterns returns the patterns of tools that a database login of triage may propose,
// of any source: the tools of mail, those of the built-in actions of tags, and those
// that send briefs. The database accepts the latter as open tries of tags alone, and for
// channels of briefs alone.
func Patterns() []string {
	all := []string{"*:" + brief.ToolMail, "*:" + brief.ToolSlack, "*:" + brief.ToolWebhook}
	for _, action := range slices.Sorted(maps.Keys(tag.Registry(nil))) {
		all = append(all, "*:"+tag.Registry(nil)[action].Tool)
	}
	for _, r := range Rules() {
		if r.Pattern != "/account" {
			continue
		}
		for _, tool := range r.Tools {
			all = append(all, "*:"+string(tool))
		}
	}
	return all
}

// Field is one argument of a call.
type Field struct {
	// Pointer is its place in the arguments (RFC 6901).
	Pointer string
	Value   Value
}

// Rule restricts the origins of the values at a place of the arguments. The
// database has the same rules.
type Rule struct {
	// Pattern is a pointer with * for an index.
	Pattern string
	Tools   []Tool
	Origins []Origin
}

// Rules returns the rules of all places. Other places are rejected.
func Rules() []Rule {
	known := []Tool{ToolLabel, ToolFlag, ToolArchive, ToolMove, ToolTrash, ToolSnooze}
	read := append(slices.Clone(known), ToolUnsubscribe, ToolAway)
	draft, away := []Tool{ToolDraft}, []Tool{ToolAway}
	chosen := []Origin{Header, Configured, Templated}
	return []Rule{
		{"/account", append(slices.Clone(read), ToolDraft), []Origin{Configured}},
		{"/message/folder", read, []Origin{Header}},
		{"/message/key", read, []Origin{Header}},
		{"/message/message_id", read, []Origin{Header}},
		{"/message/identity", read, []Origin{Header}},
		{"/expected/folder", known, []Origin{Header}},
		{"/expected/flags/*", known, []Origin{Header}},
		{"/labels/add/*", []Tool{ToolLabel, ToolArchive}, chosen},
		{"/labels/remove/*", []Tool{ToolLabel, ToolArchive}, chosen},
		{"/flags/add/*", []Tool{ToolFlag, ToolLabel}, []Origin{Enumerated}},
		{"/flags/remove/*", []Tool{ToolFlag, ToolLabel}, []Origin{Enumerated}},
		{"/folder", []Tool{ToolMove}, []Origin{Configured}},
		{"/until", []Tool{ToolSnooze}, []Origin{Calendar}},
		{"/to/*", draft, chosen},
		{"/cc/*", draft, chosen},
		{"/subject", draft, chosen},
		{"/in_reply_to", draft, []Origin{Header}},
		{"/references/*", draft, []Origin{Header}},
		{"/text", draft, []Origin{Header, Configured, Templated, Enumerated, ModelText}},
		{"/to", away, []Origin{Header}},
		{"/subject", away, []Origin{Configured}},
		{"/text", away, []Origin{Configured}},
		{"/since", away, []Origin{Configured}},
		{"/until", away, []Origin{Configured}},
	}
}

// guard is a check of one field of a call of a tool.
type guard struct {
	name   string
	accept func(tool Tool, f Field) error
}

// guards are the checks of fields. Each alone rejects fields that the others and Args
// accept.
func guards() []guard {
	return []guard{{"place", checkPlace}, {"origin", checkOrigin}, {"label", checkLabel}}
}

// Check returns an error unless every field is at a place of the tool, with a
// value of an origin that the place takes.
func Check(tool Tool, fields []Field) error { return checkBy(guards(), tool, fields) }

func checkBy(guards []guard, tool Tool, fields []Field) error {
	for _, f := range fields {
		for _, g := range guards {
			if err := g.accept(tool, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPlace(tool Tool, f Field) error {
	if _, ok := ruleAt(tool, f.Pointer); !ok {
		return fmt.Errorf("the tool %s has no field %s", tool, f.Pointer)
	}
	return nil
}

func checkOrigin(tool Tool, f Field) error {
	if r, ok := ruleAt(tool, f.Pointer); ok && !slices.Contains(r.Origins, f.Value.origin) {
		return fmt.Errorf("the field %s cannot have a value of the origin %q", f.Pointer, f.Value.origin)
	}
	return nil
}

func checkLabel(_ Tool, f Field) error {
	if strings.HasPrefix(f.Pointer, "/labels/") && asksForAction(f.Value.text) {
		return fmt.Errorf("the label at %s requests an action; only people set such labels", f.Pointer)
	}
	return nil
}

// ruleAt returns the rule of a tool for a pointer's place.
func ruleAt(tool Tool, pointer string) (Rule, bool) {
	rules, pattern := Rules(), patternOf(pointer)
	at := slices.IndexFunc(rules, func(r Rule) bool { return r.Pattern == pattern && slices.Contains(r.Tools, tool) })
	if at < 0 {
		return Rule{}, false
	}
	return rules[at], true
}

// patternOf returns a pointer with * for a trailing index.
func patternOf(pointer string) string {
	end := strings.LastIndexByte(pointer, '/')
	if end > 0 && isIndex(pointer[end+1:]) {
		return pointer[:end] + "/*"
	}
	return pointer
}

// Row is the stored form of a field. It cannot be converted back into a Field.
type Row struct {
	Pointer string `json:"pointer"`
	Value   string `json:"value"`
	Origin  Origin `json:"origin"`
	Ref     string `json:"ref"`
}

// RowsOf returns the rows of fields.
func RowsOf(fields []Field) []Row {
	rows := make([]Row, len(fields))
	for i, f := range fields {
		rows[i] = Row{f.Pointer, f.Value.text, f.Value.origin, f.Value.ref}
	}
	return rows
}
