package mailbox

import (
	"bytes"
	"strings"
)

// MessageID returns the Message-ID of a message without its angle brackets, as
// Find and Append compare it, or "" without one. Of several it returns the
// first. The bytes of the header suffice.
func MessageID(raw []byte) string {
	for len(raw) > 0 {
		line, rest := headerLine(raw)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return ""
		}
		raw = rest
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !strings.EqualFold(string(bytes.TrimRight(name, " \t")), "Message-ID") {
			continue
		}
		id := string(bytes.TrimSpace(value))
		if _, inside, ok := strings.Cut(id, "<"); ok {
			id, _, _ = strings.Cut(inside, ">")
		}
		return strings.Join(strings.Fields(id), "")
	}
	return ""
}

// headerLine returns the first header line with its continuations.
func headerLine(raw []byte) (line, rest []byte) {
	end := 0
	for {
		i := bytes.IndexByte(raw[end:], '\n')
		if i < 0 {
			return raw, nil
		}
		end += i + 1
		first := len(bytes.TrimRight(raw[:end], "\r\n")) == 0
		if first || end == len(raw) || raw[end] != ' ' && raw[end] != '\t' {
			return raw[:end], raw[end:]
		}
	}
}
