package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/visible"
)

// The strengths of differences.
const (
	// StrengthText is a change of descriptive text. An agent reads it.
	StrengthText = "text"
	// StrengthInterface is a change of the meaning of a call.
	StrengthInterface = "interface"
)

// Diff lists the differences between two definitions, in order of place. Without
// a previous definition everything is new. The error is that one of them has no
// canonical form.
func Diff(was *Definition, now Definition) ([]wire.ToolDifference, error) {
	var before map[string]any
	var err error
	if was != nil {
		if before, err = was.document(); err != nil {
			return nil, err
		}
	}
	after, err := now.document()
	if err != nil {
		return nil, err
	}
	d := differ{}
	for _, part := range []string{"title", "description", "input_schema", "output_schema", "hints"} {
		d.part(part, before, after)
	}
	return d.changes, nil
}

// Diff lists the changes of the tool's definition since it was accepted. If the
// accepted one is unknown, everything is new.
func (t *Tool) Diff() ([]wire.ToolDifference, error) { return Diff(t.AcceptedDefinition, t.Definition) }

// document returns the definition as one value, without empty parts.
func (d Definition) document() (map[string]any, error) {
	doc := map[string]any{}
	if d.Title != "" {
		doc["title"] = d.Title
	}
	if d.Description != "" {
		doc["description"] = d.Description
	}
	for name, raw := range map[string]json.RawMessage{"input_schema": d.InputSchema, "output_schema": d.OutputSchema} {
		if len(raw) == 0 {
			continue
		}
		schema, err := parseSchema(raw)
		if err != nil {
			return nil, err
		}
		doc[name] = schema
	}
	hints := map[string]any{}
	for name, hint := range map[string]bool{"read_only": d.Hints.ReadOnly, "idempotent": d.Hints.Idempotent} {
		if hint {
			hints[name] = true
		}
	}
	for name, hint := range map[string]*bool{"destructive": d.Hints.Destructive, "open_world": d.Hints.OpenWorld} {
		if hint != nil {
			hints[name] = *hint
		}
	}
	if len(hints) > 0 {
		doc["hints"] = hints
	}
	return doc, nil
}

// differ collects differences.
type differ struct {
	// texts is set if the texts in the current schema count.
	texts   texts
	changes []wire.ToolDifference
}

func (d *differ) part(name string, before, after map[string]any) {
	was, is := member(before, name), member(after, name)
	at, strength := verbatim, StrengthInterface
	switch name {
	case "title", "description":
		strength = StrengthText
	case "input_schema", "output_schema":
		at = aSchema
	}
	d.texts = withoutTexts
	if at == aSchema && (refersToTexts(was) || refersToTexts(is)) {
		d.texts = withTexts
	}
	d.compare("/"+name, was, is, at, strength)
}

// nothing represents a missing value, as distinct from null.
type nothing struct{}

func member(of map[string]any, name string) any {
	if v, ok := of[name]; ok {
		return v
	}
	return nothing{}
}

func (d *differ) compare(pointer string, was, is any, at position, strength string) {
	switch v := is.(type) {
	case map[string]any:
		if before, ok := was.(map[string]any); ok {
			d.objects(pointer, before, v, at, strength)
			return
		}
	case []any:
		if before, ok := was.([]any); ok && at != aSet && len(before) == len(v) {
			for i := range v {
				next := verbatim
				if at == schemas {
					next = aSchema
				}
				d.compare(pointer+"/"+strconv.Itoa(i), before[i], v[i], next, strength)
			}
			return
		}
	}
	wasText, isText := written(was, at), written(is, at)
	if wasText == isText {
		return
	}
	change := wire.ToolDifference{Pointer: pointer, Strength: strength}
	var hidden [3]bool
	change.Was, hidden[0] = revealed(was)
	change.Now, hidden[1] = revealed(is)
	change.Pointer, hidden[2] = visible.Reveal(pointer)
	change.HiddenCharacters = slices.Contains(hidden[:], true)
	d.changes = append(d.changes, change)
}

func (d *differ) objects(at string, was, is map[string]any, where position, strength string) {
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		before, after := member(was, name), member(is, name)
		some := after
		if some == (nothing{}) {
			some = before
		}
		next, matters := where.of(name, some), strength
		if next == aText && d.texts == withoutTexts {
			matters = StrengthText
		}
		d.compare(at+"/"+envelope.EscapePointer(name), before, after, next, matters)
	}
}

// written returns a value in the form that is compared.
func written(value any, at position) string {
	switch v := value.(type) {
	case nothing:
		return ""
	case string: // a title may contain invalid JSON text
		return strconv.Quote(v)
	}
	text, err := write(shaped(value, at, withTexts))
	if err != nil { // it was read from a canonical form
		return "invalid"
	}
	return string(text)
}

// revealed returns a value as JSON with hidden characters escaped; nil for
// nothing.
func revealed(value any) (json.RawMessage, bool) {
	if _, none := value.(nothing); none {
		return nil, false
	}
	shown, hidden := revealAll(value)
	text, err := write(shown)
	if err != nil { // names that only differ in how they are written
		return json.RawMessage(`"cannot be shown"`), true
	}
	return text, hidden
}

func revealAll(value any) (any, bool) {
	switch v := value.(type) {
	case string:
		shown, hidden := visible.Reveal(v)
		return shown, hidden
	case []any:
		all, hidden := make([]any, len(v)), false
		for i, one := range v {
			shown, hides := revealAll(one)
			all[i], hidden = shown, hidden || hides
		}
		return all, hidden
	case map[string]any:
		all, hidden := make(map[string]any, len(v)), false
		for name, one := range v {
			shownName, hidesName := visible.Reveal(name)
			for _, taken := all[shownName]; taken; _, taken = all[shownName] {
				shownName += "'"
			}
			shown, hides := revealAll(one)
			all[shownName], hidden = shown, hidden || hides || hidesName
		}
		return all, hidden
	}
	return value, false
}

// HidesCharacters reports whether the tool's definition contains invisible
// characters.
func (t *Tool) HidesCharacters() bool {
	doc, err := t.document()
	if err != nil {
		return true
	}
	_, hidden := revealAll(doc)
	return hidden || hides(t.Key.Action)
}

// hides reports whether a text contains invisible characters.
func hides(text string) bool {
	_, hidden := visible.Reveal(text)
	return hidden
}

// storable reports whether the database can store a text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
