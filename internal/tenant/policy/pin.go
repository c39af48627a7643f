package policy

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// The bounds of a grant's pins.
const (
	MaxPins     = 32
	MaxPinBytes = 64 << 10
)

// Pins are paths in arguments with the values that must be there. The zero
// value has none, and holds for all arguments.
type Pins struct{ all []pin }

type pin struct {
	path  jsonref.Pointer
	value any
}

// ParsePins reads JSON Pointers (RFC 6901) into the arguments, each with its
// value; the empty pointer pins the whole of them. What is no pointer, no
// value, or too much, is fault.Invalid.
func ParsePins(values map[string]json.RawMessage) (Pins, error) {
	if len(values) > MaxPins {
		return Pins{}, fault.New(fault.Invalid, "at most %d arguments can be pinned; pin the whole of them with the empty pointer", MaxPins)
	}
	pins, size := Pins{all: make([]pin, 0, len(values))}, 0
	for pointer, raw := range values {
		path, err := parsePin(pointer)
		if err != nil {
			return Pins{}, err
		}
		value, canonical, err := jsonref.DecodeCanonical(raw)
		if err != nil {
			return Pins{}, fault.New(fault.Invalid, "the value of a pin cannot be read")
		}
		if size += len(pointer) + len(canonical); size > MaxPinBytes {
			return Pins{}, fault.New(fault.Invalid, "pins have at most %d bytes", MaxPinBytes)
		}
		pins.all = append(pins.all, pin{path, value})
	}
	return pins, nil
}

// PinsOf returns the pins that hold arguments to the values that they have at
// the given pointers. A pointer to what is not there is fault.Invalid.
func PinsOf(args json.RawMessage, pointers ...string) (map[string]json.RawMessage, error) {
	doc, _, err := jsonref.DecodeCanonical(orEmpty(args))
	if err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	pins := make(map[string]json.RawMessage, len(pointers))
	for _, pointer := range pointers {
		path, err := parsePin(pointer)
		if err != nil {
			return nil, err
		}
		value, ok := path.Find(doc)
		if !ok {
			return nil, fault.New(fault.Invalid, "the arguments have nothing at %q, which is to be pinned", pointer)
		}
		raw, err := json.Marshal(value)
		if err == nil {
			raw, err = envelope.Canonical(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("pin: %w", err)
		}
		pins[pointer] = raw
	}
	return pins, nil
}

// Hold reports whether arguments have every pinned value at its path. Values
// are compared by what they mean: 1 is 1.0, and is not "1".
func (p Pins) Hold(args json.RawMessage) bool {
	if len(p.all) == 0 {
		return true
	}
	// A key that occurs twice has no one value, and is an error.
	doc, _, err := jsonref.DecodeCanonical(orEmpty(args))
	if err != nil {
		return false
	}
	for _, pin := range p.all {
		if value, ok := pin.path.Find(doc); !ok || !reflect.DeepEqual(value, pin.value) {
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

func parsePin(pointer string) (jsonref.Pointer, error) {
	path, ok := jsonref.ParsePointer(pointer)
	if !ok {
		return nil, fault.New(fault.Invalid, "a pin is a JSON Pointer into the arguments, such as /to/0")
	}
	return path, nil
}
