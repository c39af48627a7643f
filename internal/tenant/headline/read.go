package headline

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// reader reads the arguments of a call as fields.
type reader struct {
	dec        *json.Decoder
	recipients []contact.Pattern
	fields     []*field
	// known holds the fields by their path.
	known map[string]*field
}

// errTooMany ends the reading of arguments with too many fields.
var errTooMany = errors.New("too many arguments")

// value reads the value at a path; place is the path with the indexes of lists.
func (r *reader) value(path, place []string) error {
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return r.list(path, place)
		}
		return r.object(path, place)
	case string:
		return r.add(path, place, token, true)
	case json.Number:
		return r.add(path, place, token.String(), false)
	case bool:
		return r.add(path, place, strconv.FormatBool(token), false)
	}
	return r.add(path, place, "null", false)
}

// list reads the elements of a list. An empty one is a field without values.
func (r *reader) list(path, place []string) error {
	if !r.dec.More() {
		if _, err := r.field(path, append(place[:len(place):len(place)], "0")); err != nil {
			return err
		}
	}
	for i := 0; r.dec.More(); i++ {
		if err := r.value(path, append(place[:len(place):len(place)], strconv.Itoa(i))); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

// object reads the members of an object. An empty one is a field without values.
func (r *reader) object(path, place []string) error {
	if len(path) > 0 && !r.dec.More() {
		if _, err := r.field(path, place); err != nil {
			return err
		}
	}
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if err := r.value(append(path[:len(path):len(path)], name), append(place[:len(place):len(place)], name)); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

// add adds a scalar to the field of its path.
func (r *reader) add(path, place []string, value string, text bool) error {
	f, err := r.field(path, place)
	if err != nil {
		return err
	}
	f.values = append(f.values, value)
	f.text = f.text || text
	for _, p := range r.recipients {
		if p.Selects(place) {
			f.role = roleRecipient
		}
	}
	return nil
}

// field returns the field of a path; place is the path with indexes.
func (r *reader) field(path, place []string) (*field, error) {
	key := strings.Join(path, "\x00")
	f := r.known[key]
	if f == nil {
		if len(path) == 0 {
			path = []string{"arguments"}
		}
		if len(r.fields) == maxFields {
			return nil, errTooMany
		}
		f = &field{path: path, pattern: patternOf(path, place), role: roleUnknown}
		r.known[key], r.fields = f, append(r.fields, f)
	}
	return f, nil
}

// patternOf returns the JSON Pointer of a place, with * for the parts that the path lacks: the
// indexes of lists.
func patternOf(path, place []string) string {
	var b strings.Builder
	for _, segment := range place {
		b.WriteByte('/')
		if len(path) > 0 && segment == path[0] {
			b.WriteString(envelope.EscapePointer(segment))
			path = path[1:]
			continue
		}
		b.WriteByte('*')
	}
	return b.String()
}
