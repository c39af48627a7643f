package message_test

import (
	"bytes"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

func original() []byte {
	return lines(
		"Received: from a.example", "From: A <a@example.org>", "To: b@example.org,", "\tc@example.org",
		"Subject: Hello  there", "Date: Tue, 01 Jul 2025 10:52:37 +0200", "Message-ID: <one@example.org>", "",
		"From here on", "", "it is text.", "",
	)
}

func TestIdentifyIsTheSameForCopies(t *testing.T) {
	t.Parallel()

	want := message.Identify(original())
	replace := func(old, with string) []byte { return bytes.ReplaceAll(original(), []byte(old), []byte(with)) }
	for name, raw := range map[string][]byte{
		"LF for CRLF":             replace("\r\n", "\n"),
		"an mbox's empty line":    append(original(), '\r', '\n'),
		"an mbox's separator":     append([]byte("From a@example.org Tue Jul  1 10:52:37 2025\n"), original()...),
		"another Received":        replace("a.example", "b.example"),
		"headers of the server":   append([]byte("Delivered-To: b@example.org\r\nX-UID: 7\r\nStatus: RO\r\n"), original()...),
		"unfolded":                replace(",\r\n\t", ", "),
		"space at the end":        replace("there\r\n", "there \r\n"),
		"another order":           bytes.Replace(append([]byte("Message-ID: <one@example.org>\r\n"), original()...), []byte("\r\nMessage-ID: <one@example.org>\r\n\r\n"), []byte("\r\n\r\n"), 1),
		"names in another case":   replace("Subject:", "SUBJECT :"),
		"no line end at its end":  bytes.TrimRight(original(), "\r\n"),
		"return path of the last": append([]byte("Return-Path: <a@example.org>\r\n"), original()...),
	} {
		if got := message.Identify(raw); got != want {
			t.Errorf("with %s the identity is another", name)
		}
	}
}

func TestIdentifyDiffers(t *testing.T) {
	t.Parallel()

	seen := map[[32]byte]string{message.Identify(original()): "the original"}
	replace := func(old, with string) []byte { return bytes.ReplaceAll(original(), []byte(old), []byte(with)) }
	for name, raw := range map[string][]byte{
		"another text under the same Message-ID": replace("it is text", "pay this"),
		"another subject":                        replace("Hello", "Goodbye"),
		"another Message-ID":                     replace("one@", "two@"),
		"a second From":                          append([]byte("From: x@example.org\r\n"), original()...),
		"another address for answers":            append([]byte("Reply-To: x@example.org\r\n"), original()...),
		"a field moved to the body":              replace("Message-ID: <one@example.org>\r\n\r\n", "\r\nMessage-ID: <one@example.org>\r\n"),
		"a body read as HTML":                    append([]byte("Content-Type: text/html\r\n"), original()...),
		"a body read as base64":                  append([]byte("Content-Transfer-Encoding: base64\r\n"), original()...),
		"a value split over two fields":          replace(",\r\n\t", "\r\nTo: "),
		"an empty line less":                     replace("on\r\n\r\nit", "on\r\nit"),
		"nothing":                                nil,
		"no body":                                original()[:bytes.Index(original(), []byte("From here"))],
	} {
		got := message.Identify(raw)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the identity of %s", name, other)
		}
		seen[got] = name
	}
}

// TestIdentifyOfMessagesWithoutHeaders checks that messages without Message-ID
// and Date have distinct identities, and copies of one the same.
func TestIdentifyOfMessagesWithoutHeaders(t *testing.T) {
	t.Parallel()

	seen := map[[32]byte]string{}
	for _, raw := range []string{
		"Received: from a by b; one\n\n", "Received: from a by b; two\n\n", "Received: from a by b; one\nX-Note: a\n\n", "Return-Path: <a@b>\n\n", "Return-Path: <c@d>\n\n",
		"note: a\n", "note: b\n", "text alone", "other text", "Subject: backup failed\nReceived: monday\n\ndisk full", "Subject: backup failed\nReceived: tuesday\n\ndisk full",
	} {
		id := message.Identify([]byte(raw))
		if other, ok := seen[id]; ok {
			t.Errorf("%q has the identity of %q", raw, other)
		}
		seen[id] = raw
		for _, copied := range []string{"Status: RO\nX-Keywords: a\n" + raw, "From a@b Thu Mar  5 16:23:00 2026\n" + raw} {
			if raw[0] != 't' && raw[0] != 'o' && message.Identify([]byte(copied)) != id {
				t.Errorf("the copy %q has another identity", copied)
			}
		}
	}
}
