package mailbox

import (
	"strings"
	"testing"
)

func TestMessageID(t *testing.T) {
	t.Parallel()

	for raw, want := range map[string]string{
		"From: a\r\nmessage-id:\r\n <a@b>\r\n\r\nMessage-ID: <body@b>": "a@b",
		"Message-ID: <first@b>\nMessage-ID: <second@b>\n\n":            "first@b",
		"Message-Id: bare@b\n\n":                                       "bare@b",
		"From: a\n\nMessage-ID: <body@b>\n":                            "",
		"Message-ID: <open@b":                                          "open@b",
		"\nMessage-ID: <a@b>\n":                                        "",
		"no colon\nMessage-ID : <a@b>\n":                               "a@b",
		"":                                                             "",
	} {
		if got := MessageID([]byte(raw)); got != want {
			t.Errorf("MessageID(%q) = %q, want %q", raw, got, want)
		}
	}
}

func FuzzMessageID(f *testing.F) {
	f.Add([]byte("Message-ID: <a@b>\r\n\r\n"))
	f.Add([]byte("Message-ID:\n\t<a\n b>\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if id := MessageID(raw); strings.ContainsAny(id, " \r\n\t") {
			t.Errorf("Message-ID %q has white space", id)
		}
	})
}
