package policy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// maxLoose bounds the loose pointers of a grant.
const maxLoose = 256

// Everything is the pointer to the arguments as a whole. As the only loose
// pointer of a grant it means that arguments without a pin may differ.
const Everything = ""

// Exactly returns the pins of a grant for exactly these arguments: all of them,
// except the members at the loose pointers, which may have any value or be
// absent. Lists are pinned as a whole. The pointers are returned sorted and
// without duplicates. A pointer to something absent is fault.Invalid. With
// Everything the grant covers any arguments and has no pins.
func Exactly(args json.RawMessage, loose ...string) (map[string]json.RawMessage, []string, error) {
	doc, _, err := jsonref.DecodeCanonical(orEmpty(args))
	if err != nil {
		return nil, nil, fault.New(fault.Invalid, "arguments: %v", err)
	}
	paths, err := parseLoose(loose)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		if _, ok := path.Find(doc); !ok {
			return nil, nil, fault.New(fault.Invalid, "loose argument: no value at %q", path)
		}
	}
	return hold(doc, paths)
}

// hold returns the pins of a document without its loose parts.
func hold(doc any, loose []jsonref.Pointer) (map[string]json.RawMessage, []string, error) {
	pointers := make([]string, len(loose))
	for i, path := range loose {
		if len(path) == 0 {
			return map[string]json.RawMessage{}, []string{Everything}, nil
		}
		for n := range path {
			if value, ok := path[:n].Find(doc); ok && !isObject(value) {
				return nil, nil, fault.New(fault.Invalid, "loose argument %q: lists are held whole; name %q", path, path[:n])
			}
		}
		pointers[i] = path.String()
	}
	strip(doc, loose)
	raw, err := json.Marshal(doc)
	if err == nil {
		raw, err = envelope.Canonical(raw)
	}
	slices.Sort(pointers)
	return map[string]json.RawMessage{Everything: raw}, slices.Compact(pointers), err
}

// Only returns the pins of a grant for the given values by pointer: these and no
// other arguments, except the loose ones, which may be absent. A single pin of
// Everything sets all arguments. With the loose pointer Everything, any other
// arguments are allowed with the pinned ones.
func Only(values map[string]json.RawMessage, loose ...string) (map[string]json.RawMessage, []string, error) {
	_, whole := values[Everything]
	if slices.Contains(loose, Everything) {
		if whole {
			return nil, nil, fault.New(fault.Invalid, "the arguments cannot be pinned and loose as a whole")
		}
		return values, []string{Everything}, nil
	}
	paths, err := parseLoose(loose)
	if err != nil {
		return nil, nil, err
	}
	var doc any = map[string]any{}
	for _, pointer := range slices.Sorted(maps.Keys(values)) {
		value, _, err := jsonref.DecodeCanonical(values[pointer])
		switch {
		case err != nil:
			return nil, nil, fault.New(fault.Invalid, "the value of a pin cannot be read")
		case whole && (len(values) > 1 || !isObject(value)):
			return nil, nil, fault.New(fault.Invalid, "the pin of the whole arguments must be one object and the only pin")
		case whole:
			doc = value
			continue
		}
		if err := place(doc.(map[string]any), pointer, value); err != nil {
			return nil, nil, err
		}
	}
	return hold(doc, paths)
}

// place sets a value in nested objects.
func place(at map[string]any, pointer string, value any) error {
	path, err := parsePin(pointer)
	if err != nil {
		return err
	}
	for n, token := range path[:len(path)-1] {
		if _, index := jsonref.Index(path[n+1]); index {
			return fault.New(fault.Invalid, "pin %q: lists are held whole; pin %q with all of its value", pointer, path[:n+1])
		}
		if _, ok := at[token]; !ok {
			at[token] = map[string]any{}
		}
		inner, ok := at[token].(map[string]any)
		if !ok {
			return fault.New(fault.Invalid, "pin %q is inside of the pin %q", pointer, path[:n+1])
		}
		at = inner
	}
	at[path[len(path)-1]] = value
	return nil
}

// LooseBut returns the loose pointers that leave only the given pointers pinned:
// all other members of the arguments. Absent members stay pinned. A pointer into
// a list pins the list as a whole. A pointer to something absent is
// fault.Invalid.
func LooseBut(args json.RawMessage, pins ...string) ([]string, error) {
	doc, _, err := jsonref.DecodeCanonical(orEmpty(args))
	if err != nil {
		return nil, fault.New(fault.Invalid, "arguments: %v", err)
	}
	pinned := make([]jsonref.Pointer, len(pins))
	for i, pin := range pins {
		if pinned[i], err = parsePin(pin); err != nil {
			return nil, err
		}
		if _, ok := pinned[i].Find(doc); !ok {
			return nil, fault.New(fault.Invalid, "the arguments have nothing at %q, which is to be pinned", pin)
		}
	}
	return looseBut(doc, nil, pinned), nil
}

func looseBut(doc any, at jsonref.Pointer, pinned []jsonref.Pointer) []string {
	object, ok := doc.(map[string]any)
	if !ok || slices.ContainsFunc(pinned, func(pin jsonref.Pointer) bool { return len(pin) == len(at) }) {
		return nil
	}
	var loose []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		member := append(slices.Clone(at), name)
		inside := slices.DeleteFunc(slices.Clone(pinned), func(pin jsonref.Pointer) bool { return pin[len(at)] != name })
		if len(inside) == 0 {
			loose = append(loose, member.String())
		} else {
			loose = append(loose, looseBut(object[name], member, inside)...)
		}
	}
	return loose
}

// strip removes the members at pointers from nested objects.
func strip(doc any, loose []jsonref.Pointer) {
	for _, path := range loose {
		if len(path) == 0 {
			continue
		}
		if parent, ok := path[:len(path)-1].Find(doc); ok && isObject(parent) {
			delete(parent.(map[string]any), path[len(path)-1])
		}
	}
}

// leafless reports whether a value consists only of objects.
func leafless(value any) bool {
	object, ok := value.(map[string]any)
	for _, member := range object {
		ok = ok && leafless(member)
	}
	return ok
}

func isObject(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

func parseLoose(pointers []string) ([]jsonref.Pointer, error) {
	if len(pointers) > maxLoose {
		return nil, fault.New(fault.Invalid, "at most %d arguments can be loose", maxLoose)
	}
	paths := make([]jsonref.Pointer, len(pointers))
	for i, pointer := range pointers {
		var ok bool
		if paths[i], ok = jsonref.ParsePointer(pointer); !ok {
			return nil, fault.New(fault.Invalid, "a loose argument must be a JSON Pointer, such as /subject")
		}
	}
	return paths, nil
}
