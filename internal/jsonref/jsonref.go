// Package jsonref owns the one language of references in Countersign: a text
// in a JSON document that stands for a value elsewhere. Workflows, reversals,
// reconcile rules and snapshot rules use it.
//
// A reference is a root and, behind it, a JSON Pointer (RFC 6901):
//
//	$steps.0/contactId   what step 0 of the workflow answered
//	$inputs/to           what the call was given
//	$outputs/id          what the call answered
//	$key                 the idempotency key of the call
//
// $0.contactId and $0.hits[0].name are short for $steps.0/contactId and
// $steps.0/hits/0/name. $$ at the beginning of a text stands for one dollar
// sign. A reference is the whole text: inside a longer text nothing is
// replaced.
//
// The package does not know where values come from, nor what a missing one
// means: its callers do.
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
	// LooseText accepts a text such as "$5 each", which begins with one dollar
	// sign and names no root, as it is. Without LooseText it is an error.
	LooseText bool
}

// Parse reads a text: ref is nil if the text is no reference, and literal is
// then the text that it stands for.
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

// invalid is the error about a text that must be a reference and is not.
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

// parse reads a reference without its dollar sign. matched reports whether the
// text names the root at all.
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

// parseStep reads the number of a step and the path after it; nil if they are
// not valid.
func parseStep(text string, parsePath func(string) (Pointer, bool)) *Ref {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	step, err := strconv.Atoi(text[:digits])
	path, ok := parsePath(text[digits:])
	if err != nil || !ok {
		return nil
	}
	return &Ref{Root: Steps, Step: step, Path: path}
}

// Fill returns a copy of a value in which resolve has replaced every reference
// and $$ stands for one dollar sign. at is the pointer of the value itself.
// resolve gets the pointer of each reference, or the error that Parse returns
// for the text there; its own error ends Fill.
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

// Check reports every text of a value that is not a valid reference, by its
// pointer.
func (s Scope) Check(at string, doc any, report func(at string, err error)) {
	_, _ = s.Fill(at, doc, func(at string, _ Ref, invalid error) (any, error) { // the function has no error
		if invalid != nil {
			report(at, invalid)
		}
		return nil, nil
	})
}

// Walk returns a copy of a value in which every text is replaced, members in
// order of their names. replace gets the pointer of the text; its error ends the
// walk.
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

// Decode reads one JSON value and keeps numbers as they are written.
func Decode(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	return value, dec.Decode(&value)
}

// DecodeCanonical reads the canonical form of a JSON value, in which equal
// numbers are equal texts, and returns that form as well.
func DecodeCanonical(raw json.RawMessage) (value any, canonical []byte, err error) {
	if canonical, err = envelope.Canonical(raw); err != nil {
		return nil, nil, err
	}
	value, err = Decode(canonical)
	return value, canonical, err
}

// DecodeObject reads a JSON object as Decode does. An empty raw is an empty
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
