package headline

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// read returns the arguments of a call in their order, and whether these are all.
func read(args json.RawMessage, order *Order, recipients []contact.Pattern) (fields []*field, whole bool) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	v, err := decode(dec)
	r := reader{recipients: recipients, known: make(map[string]*field)}
	r.value(nil, nil, v, order.ranks())
	for _, f := range r.fields {
		f.role = roleOf(f, r.fields)
	}
	return r.fields, err == nil && !r.tooMany
}

// value is a JSON value: a list, an object, or the text of a scalar. The zero value
// stands for no value.
type value struct {
	kind    byte // '[', '{', '"' for a string, or 0 for another scalar
	text    string
	list    []value
	members []memberValue
}

type memberValue struct {
	name string
	value
}

// decode returns the next value. With an error it returns the part that was read.
func decode(dec *json.Decoder) (v value, err error) {
	token, err := dec.Token()
	if err != nil {
		return v, err
	}
	switch token := token.(type) {
	case json.Delim:
		return decodeParts(dec, byte(token))
	case string:
		return value{kind: '"', text: token}, nil
	case json.Number:
		return value{text: token.String()}, nil
	case bool:
		return value{text: strconv.FormatBool(token)}, nil
	}
	return value{text: "null"}, nil
}

func decodeParts(dec *json.Decoder, kind byte) (v value, err error) {
	v.kind = kind
	for dec.More() {
		name := ""
		if kind == '{' {
			token, err := dec.Token()
			if err != nil {
				return v, err
			}
			name, _ = token.(string)
		}
		part, err := decode(dec)
		if part.kind == 0 && part.text == "" {
			return v, err // nothing of it was read
		}
		if kind == '{' {
			v.members = append(v.members, memberValue{name, part})
		} else {
			v.list = append(v.list, part)
		}
		if err != nil {
			return v, err
		}
	}
	_, err = dec.Token()
	return v, err
}

// reader reads the arguments of a call as fields.
type reader struct {
	recipients []contact.Pattern
	fields     []*field
	// known holds the fields by their path.
	known map[string]*field
	// tooMany is set once there would be more than maxFields.
	tooMany bool
}

// value reads the value at a path; place is the path with the indexes of lists. An empty
// list or object is a field without values.
func (r *reader) value(path, place []string, v value, order *ranks) {
	path, place = path[:len(path):len(path)], place[:len(place):len(place)]
	switch {
	case v.kind == '[' && len(v.list) == 0:
		r.field(path, append(place, "0"))
	case v.kind == '{' && len(v.members) == 0 && len(path) > 0:
		r.field(path, place)
	case v.kind == '[':
		for i, part := range v.list {
			r.value(path, append(place, strconv.Itoa(i)), part, order.element())
		}
	case v.kind == '{':
		order.sort(v.members)
		for _, m := range v.members {
			r.value(append(path, m.name), append(place, m.name), m.value, order.member(m.name))
		}
	case v.text != "" || v.kind != 0:
		r.add(path, place, v)
	}
}

// add adds a scalar to the field of its path.
func (r *reader) add(path, place []string, v value) {
	f := r.field(path, place)
	if f == nil {
		return
	}
	f.values = append(f.values, v.text)
	f.text = f.text || v.kind == '"'
	for _, p := range r.recipients {
		if p.Selects(place) {
			f.role = roleRecipient
		}
	}
}

// field returns the field of a path, nil if there are too many; place is the path with
// indexes.
func (r *reader) field(path, place []string) *field {
	key := strings.Join(path, "\x00")
	f := r.known[key]
	if f == nil && !r.tooMany {
		if r.tooMany = len(r.fields) == maxFields; r.tooMany {
			return nil
		}
		if len(path) == 0 {
			path = []string{"arguments"}
		}
		f = newField(path, patternOf(path, place))
		r.known[key], r.fields = f, append(r.fields, f)
	}
	return f
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
