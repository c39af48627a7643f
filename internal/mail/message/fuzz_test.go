package message_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// same fails the test if parsing a message twice gives two results.
func same(t *testing.T, raw []byte) {
	t.Helper()
	m := check(t, "the input", raw)
	if again := message.Parse(raw); !cmp.Equal(m, again) {
		t.Errorf("read twice, it is not the same: %s", cmp.Diff(m, again))
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte("From: =?utf-8?q?a=E2=80=8Bb?= <a@b>, (c\nSubject: x\n y\nDate: Tue, 1 Jul 2025 10:52:37 +0200\nReferences: <a> <b"))
	f.Add([]byte("From - 1\n>From x\nTo : \"a, b\" <\xffc@\xfcber.example>;\nDate: x\nContent-Type: ;;charset=\"\n\n"))
	f.Add([]byte("Message-ID: <\x00a@b>\r\nIn-Reply-To:\r\n\t<c>\r\nCc: g: a@b;, =?x?q?=FF?= <d@e>\r\nno field\r\n"))
	f.Fuzz(func(t *testing.T, header []byte) { same(t, append(header, "\n\nbody"...)) })
}

func FuzzParseParts(f *testing.F) {
	f.Add("multipart/mixed; boundary=b", []byte("--b\n\ntext\n--b\nContent-Type: application/zip; name=a\nContent-Transfer-Encoding: base64\n\nUEsDBA==\n--b--"))
	f.Add("multipart/alternative; boundary=\"b\"", []byte("--b\r\nContent-Type: text/html; charset=utf-16\r\n\r\n\xff\xfe<\x00p\x00\r\n--b\r\nbroken\r\n--b"))
	f.Add("multipart/digest; boundary=b", []byte("--b\n\nFrom: a\n\nx\n--b\nContent-Type: text/calendar; method=x\n\nMETHOD:REQUEST\n"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		same(t, append([]byte("From: a@example.org\nContent-Type: "+kind+"\n\n"), body...))
	})
}

func FuzzParseHTML(f *testing.F) {
	f.Add([]byte(`<style>.a{color:#fff}</style><p class=a>x<a href=http://u@h.example:1/p>l</a><img src=a width=1>`))
	f.Add([]byte("<blockquote>a\u200b<div class=gmail_quote>On 1 a wrote:<pre>b\n\n\nc</pre></blockquote>"))
	f.Add([]byte("<base href=//x><a href=\"\x00java\nscript:\"><table><b>\u202e&#x200b;&#0;&#55296;"))
	f.Fuzz(func(t *testing.T, body []byte) {
		same(t, append([]byte("From: a@example.org\nContent-Type: text/html; charset=utf-8\n\n"), body...))
	})
}
