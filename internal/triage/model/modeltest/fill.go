package modeltest

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// First answers with the first allowed value of each enum.
func First(r Request) Reply {
	return Reply{Text: Fill(r.Schema, func(_ string, allowed []string) string { return allowed[0] })}
}

// Pick returns an Answer that uses pick for the value of each enum. The path
// consists of the names that lead to the value, separated by dots.
func Pick(pick func(path string, allowed []string) string) func(Request) Reply {
	return func(r Request) Reply { return Reply{Text: Fill(r.Schema, pick)} }
}

// Fill returns a text that matches a schema of objects, enums, texts and
// numbers, with the value of pick for each enum. For a text without an enum, it
// calls pick with an empty list of allowed values and uses its result, or "".
func Fill(schema json.RawMessage, pick func(path string, allowed []string) string) string {
	return fill(schema, nil, pick)
}

type node struct {
	Type       string          `json:"type"`
	Enum       []string        `json:"enum"`
	Const      json.RawMessage `json:"const"`
	Properties members         `json:"properties"`
	Items      json.RawMessage `json:"items"`
	MinItems   int             `json:"minItems"`
}

// members are the members of a JSON object, in order.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *members) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		of := member{name: name.(string)}
		if err := d.Decode(&of.value); err != nil {
			return err
		}
		*m = append(*m, of)
	}
	return nil
}

func fill(schema json.RawMessage, path []string, pick func(string, []string) string) string {
	var n node
	if json.Unmarshal(schema, &n) != nil {
		return "null"
	}
	switch {
	case n.Const != nil:
		return string(n.Const)
	case len(n.Enum) > 0:
		return quote(pick(strings.Join(path, "."), n.Enum))
	}
	switch n.Type {
	case "object":
		var b strings.Builder
		for i, m := range n.Properties {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(m.name) + ":" + fill(m.value, append(path[:len(path):len(path)], m.name), pick))
		}
		return "{" + b.String() + "}"
	case "array":
		all := make([]string, n.MinItems)
		for i := range all {
			all[i] = fill(n.Items, path, pick)
		}
		return "[" + strings.Join(all, ",") + "]"
	case "integer", "number":
		return "0"
	case "boolean":
		return "false"
	}
	return quote(pickText(path, pick))
}

// pickText calls pick for a free text. Functions such as First index the
// allowed values, so it passes one empty text.
func pickText(path []string, pick func(string, []string) string) string {
	return pick(strings.Join(path, "."), []string{""})
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}

// enums returns the enums of a schema by the names of their properties.
func enums(schema json.RawMessage, into map[string][]string) {
	var n node
	if json.Unmarshal(schema, &n) != nil {
		return
	}
	for _, m := range n.Properties {
		var child node
		if json.Unmarshal(m.value, &child) == nil && len(child.Enum) > 0 {
			into[m.name] = child.Enum
		}
		enums(m.value, into)
	}
}

// tokens splits an answer into tokens: each enum value is one, with the other
// values as its alternatives, and so is each piece between them.
func tokens(r Request, reply Reply) []model.Token {
	all := make(map[string][]string)
	enums(r.Schema, all)
	confidence := reply.Confidence
	if confidence == 0 {
		confidence = 0.9
	}
	var list []model.Token
	name := ""
	for _, part := range strings.SplitAfter(reply.Text, `"`) {
		text, closed := strings.CutSuffix(part, `"`)
		allowed := all[name]
		switch {
		case text != "" && in(allowed, text):
			list = append(list, value(text, allowed, confidence))
			name = ""
		case text != "":
			list = append(list, model.Token{Text: text, Logprob: -0.001, Top: []model.Alternative{{Text: text, Logprob: -0.001}}})
			if _, known := all[text]; known {
				name = text
			}
		}
		if closed {
			list = append(list, model.Token{Text: `"`, Logprob: -0.001, Top: []model.Alternative{{Text: `"`, Logprob: -0.001}}})
		}
	}
	return list
}

func in(allowed []string, text string) bool {
	return slices.Contains(allowed, text)
}

func value(text string, allowed []string, confidence float64) model.Token {
	t := model.Token{Text: text, Logprob: math.Log(confidence)}
	t.Top = append(t.Top, model.Alternative{Text: text, Logprob: t.Logprob})
	for _, other := range allowed {
		if other != text {
			t.Top = append(t.Top, model.Alternative{Text: other, Logprob: math.Log((1 - confidence) / float64(len(allowed)-1))})
		}
	}
	return t
}
