package message

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Limits of the header. Fields beyond them are omitted and noted.
const (
	maxFields      = 2000
	maxHeaderBytes = 512 << 10
)

// splitHeader calls visit with the name and the folded value of every header
// field, and returns the body. A line that cannot be in a header ends it, as in
// mail servers. Blank lines and the separator of an mbox before the header are
// skipped.
func splitHeader(raw []byte, visit func(name, value []byte)) (body []byte) {
	rest := bytes.TrimLeft(raw, "\r\n")
	if bytes.HasPrefix(rest, []byte("From ")) {
		_, rest = cutLine(rest)
	}
	for len(rest) > 0 {
		line, after := cutLine(rest)
		if len(line) == 0 {
			return after
		}
		name, ok := fieldName(line)
		if !ok {
			// Some servers quote the separator of an mbox into the header.
			if bytes.HasPrefix(line, []byte(">From ")) {
				rest = after
				continue
			}
			return rest
		}
		end := len(rest) - len(after)
		for len(after) > 0 && (after[0] == ' ' || after[0] == '\t') {
			_, after = cutLine(after)
			end = len(rest) - len(after)
		}
		value := rest[bytes.IndexByte(line, ':')+1 : end]
		visit(name, value)
		rest = after
	}
	return nil
}

// cutLine returns the first line without its line end, and the rest.
func cutLine(text []byte) (line, rest []byte) {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return bytes.TrimSuffix(text, []byte("\r")), nil
	}
	return bytes.TrimSuffix(text[:i], []byte("\r")), text[i+1:]
}

// fieldName returns the name of the field that begins at a line.
func fieldName(line []byte) ([]byte, bool) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, false
	}
	name := bytes.TrimRight(line[:i], " \t")
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return nil, false
		}
	}
	return name, len(name) > 0
}

// unfold returns a value on one line as valid UTF-8. Invalid bytes are decoded
// as Windows-1252, the usual charset of such fields.
func unfold(value []byte) string {
	value = decode8Bit(bytes.TrimSpace(value))
	removed := func(c byte) bool { return c == '\r' || c == '\n' || c == 0 }
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 && bytes.IndexByte(value, 0) < 0 {
		return string(value)
	}
	line := make([]byte, 0, len(value))
	for from := 0; from < len(value); {
		to := from
		for to < len(value) && !removed(value[to]) {
			to++
		}
		line = append(line, value[from:to]...)
		for from = to; from < len(value) && removed(value[from]); {
			from++
		}
	}
	return string(line)
}

func decode8Bit(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	decoded, err := charmap.Windows1252.NewDecoder().Bytes(text)
	if err != nil {
		return bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return decoded
}

// readFields fills the fields of a message and returns its body.
func (m *Message) readFields(raw []byte) (body []byte) {
	size, dropped, characters := 0, 0, 0
	body = splitHeader(raw, func(name, value []byte) {
		size += len(name) + len(value)
		if len(m.Fields) >= maxFields || size > maxHeaderBytes {
			dropped++
			characters += len(value)
			return
		}
		m.Fields = append(m.Fields, Field{Name: string(name), Value: unfold(value)})
	})
	if dropped > 0 {
		m.note("limit", "header", dropped, characters)
	}
	return body
}

// Get returns the value of the first field with the name, as sent. Case does
// not matter.
func (m *Message) Get(name string) string {
	for _, field := range m.Fields {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// Values returns the values of all fields with the name, in order.
func (m *Message) Values(name string) []string {
	var values []string
	for _, field := range m.Fields {
		if strings.EqualFold(field.Name, name) {
			values = append(values, field.Value)
		}
	}
	return values
}

func (m *Message) note(step, kind string, count, characters int) {
	for i, note := range m.Notes {
		if note.Step == step && note.Kind == kind {
			m.Notes[i].Count += count
			m.Notes[i].Characters += characters
			return
		}
	}
	m.Notes = append(m.Notes, Note{Step: step, Kind: kind, Count: count, Characters: characters})
}

func (m *Message) warn(text string) {
	const most = 50
	if len(m.Warnings) < most {
		m.Warnings = append(m.Warnings, text)
	}
}
