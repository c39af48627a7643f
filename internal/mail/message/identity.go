package message

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// identityFields returns the fields that are part of a message's identity.
// Beside those that people see, they are the ones that say how the body is to be
// read: the same bytes in another transfer encoding are another text.
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
//     Content-Disposition field of its header, as sent, with runs of white space
//     (so also folds) as one space and none at the ends: by name in this order,
//     those of one name in their own;
//   - an empty line;
//   - the body as sent, with lines ended by LF, and without line ends at its end.
//
// Copies of a message by IMAP APPEND, delivery to a Maildir, an mbox whose reader
// takes the quoting of From lines back, and moves to other folders and servers
// have the same identity: the fields that servers add or change (Received,
// Return-Path, Delivered-To, Status, X-…, Authentication-Results, signatures) do
// not count. Messages that differ in anything that is shown of them, or in how
// it is to be read, have different ones, whatever Message-ID their senders give
// them.
//
// A message without Message-ID and Date is not told from another one by those
// fields: of it all fields count, but for those that programs rewrite in place.
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

// rewritten reports whether programs rewrite a field of a message where it is.
func rewritten(name string) bool {
	switch name {
	case "status", "x-status", "x-keywords", "x-uid", "x-imap", "x-imapbase", "x-mozilla-status", "x-mozilla-status2", "x-mozilla-keys",
		"content-length", "lines":
		return true
	}
	return false
}

// appendSpaced appends a value with runs of white space as one space.
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
