package headline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/visible"
)

// Template is the headline of a tool's calls as people wrote it: text, in which
// {/pointer} stands for an argument. /to is a list whole; /items/*/price are the prices of
// all its items.
type Template struct {
	text string
	// pointers are the arguments in it.
	pointers []string
}

// placeholder matches an argument in a template.
var placeholder = regexp.MustCompile(`\{(/[^{}]*)\}`)

// ParseTemplate parses a template. The error is fault.Invalid.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{text: text}
	_, hidden := visible.Reveal(text)
	switch {
	case utf8.RuneCountInString(text) > MaxLength:
		return nil, fault.New(fault.Invalid, "must have at most %d characters", MaxLength)
	case hidden || strings.ContainsAny(text, "\n\t"):
		return nil, fault.New(fault.Invalid, "must be one line of visible characters")
	}
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		t.pointers = append(t.pointers, found[1])
	}
	if len(t.pointers) == 0 {
		return nil, fault.New(fault.Invalid, "must name arguments, as in: Refund {/amount} {/currency} to {/customer/email}")
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return nil, fault.New(fault.Invalid, "may have braces only around a JSON Pointer, as in {/amount}")
	}
	return t, nil
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }

// Of returns the headline of a call with the arguments. It is that of the function Of
// where the template leaves out a recipient, an amount or a destination of this call,
// names an argument that the call does not have, or is too long with its values.
func (t *Template) Of(args json.RawMessage, order *Order, recipients []contact.Pattern) string {
	fields, whole := read(args, order, recipients)
	complete := whole && !slices.ContainsFunc(fields, func(f *field) bool { return f.role < roleObject && !slices.ContainsFunc(t.pointers, f.at) })
	text := placeholder.ReplaceAllStringFunc(t.text, func(found string) string {
		i := slices.IndexFunc(fields, func(f *field) bool { return f.at(found[1 : len(found)-1]) })
		if i < 0 {
			complete = false
			return ""
		}
		return fields[i].shown(fields[i].role >= roleObject)
	})
	if !complete || utf8.RuneCountInString(text) > MaxLength {
		return line(fields, whole)
	}
	return text
}

// at reports whether the field is at a pointer of a template.
func (f *field) at(pointer string) bool { return f.pattern == pointer || f.pattern == pointer+"/*" }

// Suggest returns a template for the calls of a tool, from the names of its arguments;
// empty if none of them has a known meaning.
func Suggest(inputSchema json.RawMessage, recipients []contact.Pattern) string {
	fields, _ := read(json.RawMessage(sample(inputSchema, 0)), nil, recipients)
	slices.SortStableFunc(fields, func(a, b *field) int { return int(a.role) - int(b.role) })
	var parts []string
	for _, f := range fields {
		if f.role > roleObject || f.role == roleCurrency && f.besideAmount(fields) {
			continue
		}
		part := fmt.Sprintf("%s {%s}", f.label(fields), strings.TrimSuffix(f.pattern, "/*"))
		if f.role == roleAmount {
			if c := currencyOf(f, fields); c != nil {
				part += fmt.Sprintf(" {%s}", c.pattern)
			}
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, " · ")
	if _, err := ParseTemplate(text); err != nil {
		return ""
	}
	return text
}

// maxSampleDepth bounds the nesting of a sample.
const maxSampleDepth = 4

// sample returns arguments with every property that a schema names, in its order.
func sample(schema json.RawMessage, depth int) string {
	parts := members(schema)
	text := func(name string) string { return strings.Trim(string(parts.find(name)), `"`) }
	switch properties := members(parts.find("properties")); {
	case depth > maxSampleDepth:
	case len(properties) > 0:
		list := make([]string, len(properties))
		for i, p := range properties {
			name, _ := json.Marshal(p.name)
			list[i] = string(name) + ":" + sample(p.value, depth+1)
		}
		return "{" + strings.Join(list, ",") + "}"
	case text("type") == "array":
		return "[" + sample(parts.find("items"), depth+1) + "]"
	case text("type") == "object":
		return "{}"
	}
	return `""`
}

// object is a JSON object with its order.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// find returns the value of a member, or nil.
func (o object) find(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// members returns the members of an object; nil for anything else.
func members(raw json.RawMessage) object {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	var o object
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		m := member{name: name}
		if err != nil || !ok || dec.Decode(&m.value) != nil {
			return o
		}
		o = append(o, m)
	}
	return o
}
