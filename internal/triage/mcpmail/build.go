package mcpmail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// fields are the parts of a message that a server returns instead of the
// original.
type fields struct {
	// headers are names and values, in the order of the answer.
	headers    [][2]string
	text, html string
}

// kept reports whether a header field is kept in a built message. Fields that
// authenticate are not, since a server's repetition proves nothing.
func kept(name string) (canonical string, ok bool) {
	for _, field := range []string{
		"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
		"List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "Precedence", "Auto-Submitted",
	} {
		if strings.EqualFold(field, name) {
			return field, true
		}
	}
	return "", false
}

const (
	maxHeaders = 100
	maxHeader  = 16 << 10
)

// message returns the bytes of a message in an answer, and whether they were
// built from fields because the server does not return the original.
func (s *server) message(doc any) (raw []byte, built bool, err error) {
	if text := s.text(doc, "message.raw"); text != "" {
		raw, err := decode(text)
		if err != nil {
			return nil, false, s.fault("invalid base64 in the original of a message", mailbox.ErrUnreadable)
		}
		return raw, false, nil
	}
	f := s.fieldsOf(doc)
	if !slices.ContainsFunc(f.headers, func(h [2]string) bool { return strings.EqualFold(h[0], "From") && h[1] != "" }) {
		return nil, false, s.fault("a message has neither its original nor a sender", mailbox.ErrUnreadable)
	}
	return f.build(), true, nil
}

// decode decodes base64 of either alphabet, with or without padding.
func decode(text string) ([]byte, error) {
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "").Replace(text), "=")
	return base64.RawStdEncoding.DecodeString(text)
}

func (s *server) fieldsOf(doc any) fields {
	if s.profile.message != nil {
		return s.profile.message(doc)
	}
	f := fields{text: s.text(doc, "message.text"), html: s.text(doc, "message.html")}
	if value, ok := s.profile.find(doc, "message.headers"); ok {
		f.headers = pairs(value)
	}
	given := func(name string) bool {
		return slices.ContainsFunc(f.headers, func(h [2]string) bool { return strings.EqualFold(h[0], name) })
	}
	for _, field := range [][2]string{
		{"From", "message.from"}, {"To", "message.to"}, {"Cc", "message.cc"}, {"Subject", "message.subject"}, {"Date", "message.date"}, {"Message-ID", "message.id"},
	} {
		if value := s.text(doc, field[1]); value != "" && !given(field[0]) {
			f.headers = append(f.headers, [2]string{field[0], value})
		}
	}
	return f
}

// pairs reads header fields: a list of objects with name and value, or an
// object by name, which has no order.
func pairs(value any) (all [][2]string) {
	add := func(name, value any) {
		n, isName := name.(string)
		v, isValue := value.(string)
		if isName && isValue && len(all) < maxHeaders {
			all = append(all, [2]string{n, v})
		}
	}
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			if object, ok := member.(map[string]any); ok {
				add(object["name"], object["value"])
			}
		}
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			add(name, value[name])
		}
	}
	return all
}

// build returns a message of the fields. It is deterministic. No value can end
// its line, so that none adds a field.
func (f fields) build() []byte {
	var b bytes.Buffer
	for _, h := range f.headers[:min(len(f.headers), maxHeaders)] {
		name, ok := kept(h[0])
		if !ok {
			continue
		}
		if value := oneLine(h[1]); value != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", name, encoded(name, value))
		}
	}
	kind, body := "plain", f.text
	if body == "" && f.html != "" {
		kind, body = "html", f.html
	}
	fmt.Fprintf(&b, "MIME-Version: 1.0\r\nContent-Type: text/%s; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n", kind)
	b.WriteString(strings.ToValidUTF8(body, "\uFFFD"))
	return b.Bytes()
}

func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxHeader)], "\uFFFD"))
	return strings.TrimSpace(text)
}

// encoded encodes a subject that is not ASCII in encoded words. Other fields
// stay in UTF-8, which parsers accept.
func encoded(name, value string) string {
	if name == "Subject" {
		return mime.QEncoding.Encode("utf-8", value)
	}
	return value
}

// gmailMessage reads a message of Gmail's API, with the bodies of its parts
// decoded.
func gmailMessage(doc any) (f fields) {
	object, _ := doc.(map[string]any)
	payload, _ := object["payload"].(map[string]any)
	f.headers = pairs(payload["headers"])
	f.text, f.html = gmailBody(payload, "text/plain", 0), gmailBody(payload, "text/html", 0)
	return f
}

// gmailBody returns the first part of a type.
func gmailBody(part map[string]any, kind string, depth int) string {
	const deepest = 20
	body, _ := part["body"].(map[string]any)
	data, _ := body["data"].(string)
	if part["mimeType"] == kind && data != "" {
		return data
	}
	parts, _ := part["parts"].([]any)
	for _, member := range parts {
		if below, ok := member.(map[string]any); ok && depth < deepest {
			if text := gmailBody(below, kind, depth+1); text != "" {
				return text
			}
		}
	}
	return ""
}
