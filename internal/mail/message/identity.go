package message

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// identityFields returns the fields that are part of a message's identity:
// those that people see, and those that control how the body is decoded, since
// the same bytes in another transfer encoding are another text.
func identityFields() [13]string {
	return [...]string{
		"from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references",
		"content-type", "content-transfer-encoding", "content-disposition",
	}
}

// Identify returns the identity of a message: a SHA-256 digest over
//
//   - every From, Sender, Reply-To, To, Cc, Subject, Date, Message-ID,
//     In-Reply-To, References, Content-Type, Content-Transfer-Encoding and
//     Content-Disposition field of its header, as sent, with each run of white
//     space, and so each fold, as one space and none at the ends: sorted by name
//     in this order, and fields of one name in their own order;
//   - an empty line;
//   - the body as sent, with lines ended by LF, and without line ends at its end.
//
// Copies by IMAP APPEND, by delivery to a Maildir or an mbox whose reader unquotes
// From lines, and by moves to other folders and servers have the same identity:
// the fields that servers add or change (Received, Return-Path, Delivered-To,
// Status, X-…, Authentication-Results, signatures) do not count. Messages that
// differ in anything shown, or in how it is decoded, have different identities,
// even with the same Message-ID.
//
// Without Message-ID and Date those fields do not distinguish messages. Then all
// fields count, except those that programs rewrite in place.
func Identify(raw []byte) [32]byte {
	names := identityFields()
	var values [len(names)][][]byte
	dated := false
	body := splitHeader(raw, func(name, value []byte) {
		for i, want := range names {
			if len(want) == len(name) && strings.EqualFold(want, string(name)) {
				values[i] = append(values[i], value)
				dated = dated || want == "date" || want == "message-id"
			}
		}
	})
	digest := sha256.New()
	buffer := make([]byte, 0, 4096)
	write := func(name string, value []byte) {
		buffer = append(append(buffer[:0], name...), ':')
		buffer = appendSpaced(buffer, value)
		buffer = append(buffer, '\n')
		digest.Write(buffer)
	}
	for i, name := range names {
		for _, value := range values[i] {
			write(name, value)
		}
	}
	if !dated {
		splitHeader(raw, func(name, value []byte) {
			if lower := strings.ToLower(string(name)); !rewritten(lower) {
				write(lower, value)
			}
		})
	}
	digest.Write([]byte{'\n'})
	body = bytes.TrimRight(body, "\r\n")
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\r')
		switch {
		case i < 0:
			digest.Write(body)
			body = nil
		case i+1 < len(body) && body[i+1] == '\n':
			digest.Write(body[:i])
			body = body[i+1:]
		default:
			digest.Write(body[:i+1])
			body = body[i+1:]
		}
	}
	return [32]byte(digest.Sum(nil))
}

// rewritten reports whether programs rewrite a field in place.
func rewritten(name string) bool {
	switch name {
	case "status", "x-status", "x-keywords", "x-uid", "x-imap", "x-imapbase", "x-mozilla-status", "x-mozilla-status2", "x-mozilla-keys",
		"content-length", "lines":
		return true
	}
	return false
}

// appendSpaced appends a value with each run of white space as one space.
func appendSpaced(to, value []byte) []byte {
	space := false
	value = bytes.Trim(value, " \t\r\n")
	for _, c := range value {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			space = true
			continue
		}
		if space {
			to = append(to, ' ')
			space = false
		}
		to = append(to, c)
	}
	return to
}
