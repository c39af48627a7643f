package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// The bounds of a grant's pins.
const (
	MaxPins     = 32
	MaxPinBytes = 64 << 10
)

// Pins are places in arguments with the values that must be there. The zero
// value has none, and every arguments hold it.
type Pins struct{ all []pin }

type pin struct {
	path  []string
	value []byte
}

// ParsePins reads JSON Pointers (RFC 6901) into the arguments, each with its
// value; the empty pointer pins the whole of them. What is no pointer, no
// value, or too much, is fault.Invalid.
func ParsePins(values map[string]json.RawMessage) (Pins, error) {
	if len(values) > MaxPins {
		return Pins{}, fault.New(fault.Invalid, "at most %d arguments can be pinned; pin the whole of them with the empty pointer", MaxPins)
	}
	pins, size := Pins{all: make([]pin, 0, len(values))}, 0
	for pointer, value := range values {
		path, ok := splitPointer(pointer)
		if !ok {
			return Pins{}, fault.New(fault.Invalid, "a pin is a JSON Pointer into the arguments, such as /to/0")
		}
		canonical, err := envelope.Canonical(value)
		if err != nil {
			return Pins{}, fault.New(fault.Invalid, "the value of a pin cannot be read")
		}
		if size += len(pointer) + len(canonical); size > MaxPinBytes {
			return Pins{}, fault.New(fault.Invalid, "pins have at most %d bytes", MaxPinBytes)
		}
		pins.all = append(pins.all, pin{path, canonical})
	}
	slices.SortFunc(pins.all, func(a, b pin) int { return slices.Compare(a.path, b.path) })
	return pins, nil
}

// PinsOf returns the pins that hold arguments to what they are at the given
// places. A pointer to what is not there is fault.Invalid.
func PinsOf(args json.RawMessage, pointers ...string) (map[string]json.RawMessage, error) {
	pins := make(map[string]json.RawMessage, len(pointers))
	for _, pointer := range pointers {
		path, ok := splitPointer(pointer)
		if !ok {
			return nil, fault.New(fault.Invalid, "a pin is a JSON Pointer into the arguments, such as /to/0")
		}
		value, ok := at(orEmpty(args), path)
		if !ok {
			return nil, fault.New(fault.Invalid, "the arguments have nothing at %q, which is to be pinned", pointer)
		}
		canonical, err := envelope.Canonical(value)
		if err != nil {
			return nil, fmt.Errorf("pin: %w", err)
		}
		pins[pointer] = canonical
	}
	return pins, nil
}

// Hold says whether arguments have every value at its place. Values are the
// same if they mean the same: 1 and 1.0 do, 1 and "1" do not.
func (p Pins) Hold(args json.RawMessage) bool {
	if len(p.all) == 0 {
		return true
	}
	// A key that occurs twice has no one value.
	canonical, err := envelope.Canonical(orEmpty(args))
	if err != nil {
		return false
	}
	for _, pin := range p.all {
		value, ok := at(canonical, pin.path)
		if !ok || !bytes.Equal(value, pin.value) {
			return false
		}
	}
	return true
}

func orEmpty(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// at returns what is at a path.
func at(value json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, name := range path {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(value, &object) == nil && object != nil:
			var ok bool
			if value, ok = object[name]; !ok {
				return nil, false
			}
		case json.Unmarshal(value, &list) == nil && list != nil:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(list) || strconv.Itoa(i) != name {
				return nil, false
			}
			value = list[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// splitPointer reads a JSON Pointer.
func splitPointer(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	path := strings.Split(pointer[1:], "/")
	for i, name := range path {
		for rest := name; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, false
			}
			rest = after[1:]
		}
		path[i] = envelope.UnescapePointer(name)
	}
	return path, true
}
