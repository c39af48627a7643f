// Package jsonref owns the language of references in Countersign: a text in a
// JSON document that stands for a value elsewhere. Workflows, reversals,
// reconcile rules and snapshot rules use it.
//
// A reference is a root followed by a JSON Pointer (RFC 6901):
//
//	$steps.0/contactId   in the output of step 0 of the workflow
//	$inputs/to           in the arguments of the call
//	$outputs/id          in the output of the call
//	$key                 the idempotency key of the call
//
// $0.contactId and $0.hits[0].name are short for $steps.0/contactId and
// $steps.0/hits/0/name. $$ at the beginning of a text is an escaped dollar sign.
// A reference is a whole text: references within a longer text are not replaced.
//
// The callers of the package supply the values and decide the meaning of missing
// ones.
package jsonref

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Root is the beginning of a reference.
type Root string

// The roots.
const (
	Steps   Root = "steps"
	Inputs  Root = "inputs"
	Outputs Root = "outputs"
	Key     Root = "key"
)

// Ref is a reference.
type Ref struct {
	Root Root
	// Step is the number of the step if the root is Steps.
	Step int
	Path Pointer
}

// String returns the reference in its long form, which Parse reads.
func (r Ref) String() string {
	if r.Root == Steps {
		return "$steps." + strconv.Itoa(r.Step) + r.Path.String()
	}
	return "$" + string(r.Root) + r.Path.String()
}

// Scope is the set of references that a document may contain.
type Scope struct {
	Roots []Root
	// LooseText accepts a text that begins with one dollar sign and has no root,
	// such as "$5 each". Without LooseText it is an error.
	LooseText bool
}

// Parse parses a text. ref is nil if the text is not a reference; literal is
// then the text without escapes.
func (s Scope) Parse(text string) (ref *Ref, literal string, err error) {
	rest, special := strings.CutPrefix(text, "$")
	if !special {
		return nil, text, nil
	}
	if strings.HasPrefix(rest, "$") {
		return nil, rest, nil
	}
	for _, root := range s.Roots {
		parsed, matched := parse(root, rest)
		switch {
		case parsed != nil:
			return parsed, "", nil
		case matched:
			return nil, "", s.invalid()
		}
	}
	if s.LooseText {
		return nil, text, nil
	}
	return nil, "", s.invalid()
}

// invalid returns the error for a text that must be a reference and is not.
func (s Scope) invalid() error {
	forms := make([]string, len(s.Roots))
	for i, root := range s.Roots {
		switch root {
		case Steps:
			forms[i] = "$steps.0/name or $0.name"
		case Key:
			forms[i] = "$key"
		case Inputs, Outputs:
			forms[i] = "$" + string(root) + "/name"
		}
	}
	return fmt.Errorf("is not a valid reference: write %s, or $$ at the beginning of a text for a dollar sign", strings.Join(forms, ", "))
}

// parse parses a reference without its dollar sign. matched reports whether the
// text begins with root.
func parse(root Root, text string) (ref *Ref, matched bool) {
	below, named := strings.CutPrefix(text, string(root))
	switch root {
	case Steps:
		if number, ok := strings.CutPrefix(below, "."); named && ok {
			return parseStep(number, ParsePointer), true
		}
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if digits == 0 || digits == len(text) || text[digits] != '.' && text[digits] != '[' {
			return nil, named && strings.HasPrefix(below, "/")
		}
		return parseStep(text, parseShort), true
	case Key:
		if named && below == "" {
			return &Ref{Root: root}, true
		}
	case Inputs, Outputs:
		if !named || below != "" && below[0] != '/' {
			return nil, false
		}
		if path, ok := ParsePointer(below); ok {
			return &Ref{Root: root, Path: path}, true
		}
		return nil, true
	}
	return nil, false
}

// parseStep parses the number of a step and the path after it. It returns nil if
// they are invalid.
func parseStep(text string, parsePath func(string) (Pointer, bool)) *Ref {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	step, err := strconv.Atoi(text[:digits])
	path, ok := parsePath(text[digits:])
	if err != nil || !ok {
		return nil
	}
	return &Ref{Root: Steps, Step: step, Path: path}
}

// Fill returns a copy of doc in which every reference is replaced by the result
// of resolve and $$ by a dollar sign. at is the pointer of doc. resolve receives
// the pointer of each reference, or the error of Parse for the text there. An
// error of resolve ends Fill.
func (s Scope) Fill(at string, doc any, resolve func(at string, ref Ref, invalid error) (any, error)) (any, error) {
	return Walk(at, doc, func(at, text string) (any, error) {
		ref, literal, err := s.Parse(text)
		switch {
		case err != nil:
			return resolve(at, Ref{}, err)
		case ref != nil:
			return resolve(at, *ref, nil)
		}
		return literal, nil
	})
}

// Check reports every invalid reference in a value with its pointer.
func (s Scope) Check(at string, doc any, report func(at string, err error)) {
	_, _ = s.Fill(at, doc, func(at string, _ Ref, invalid error) (any, error) { // the function has no error
		if invalid != nil {
			report(at, invalid)
		}
		return nil, nil
	})
}

// Walk returns a copy of value in which every text is replaced, with members in
// the order of their names. replace receives the pointer of each text. An error
// of replace ends Walk.
func Walk(at string, value any, replace func(at, text string) (any, error)) (any, error) {
	switch v := value.(type) {
	case string:
		return replace(at, v)
	case []any:
		all := make([]any, len(v))
		for i, element := range v {
			next, err := Walk(at+"/"+strconv.Itoa(i), element, replace)
			if err != nil {
				return nil, err
			}
			all[i] = next
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			next, err := Walk(at+"/"+envelope.EscapePointer(name), v[name], replace)
			if err != nil {
				return nil, err
			}
			all[name] = next
		}
		return all, nil
	}
	return value, nil
}

// Decode decodes one JSON value and keeps numbers as json.Number.
func Decode(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	return value, dec.Decode(&value)
}

// DecodeCanonical decodes the canonical form of a JSON value, in which equal
// numbers are equal texts, and also returns that form.
func DecodeCanonical(raw json.RawMessage) (value any, canonical []byte, err error) {
	if canonical, err = envelope.Canonical(raw); err != nil {
		return nil, nil, err
	}
	value, err = Decode(canonical)
	return value, canonical, err
}

// DecodeObject decodes a JSON object like Decode. An empty raw is an empty
// object.
func DecodeObject(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	doc, err := Decode(raw)
	object, ok := doc.(map[string]any)
	if err == nil && !ok {
		err = errors.New("not a JSON object")
	}
	return object, err
}
