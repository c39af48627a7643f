package message_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// lines joins lines with CRLF.
func lines(text ...string) []byte { return []byte(strings.Join(text, "\r\n")) }

func TestParseHeader(t *testing.T) {
	t.Parallel()

	m := message.Parse(lines(
		"From: =?utf-8?q?Zo=C3=AB_M=C3=BCller?= <Zoe@Example.ORG>",
		"Reply-To: other@bücher.example",
		"To: Team: a@example.com, \"B, b\" <b@example.com>;",
		"Cc: c@example.com, broken <d@example.com",
		"Subject: =?utf-8?q?Pay=E2=80=8Bment?=",
		"  of the invoice",
		"Date: Tue, 01 Jul 2025 10:52:37 +0200",
		"Message-ID: <one@example.org>",
		"In-Reply-To: <zero@example.org>",
		"References: <a@example.org>",
		"\t<zero@example.org>",
		"",
		"Hello",
	))

	if want := []message.Address{{Name: "Zoë Müller", Addr: "zoe@example.org"}}; !cmp.Equal(m.From, want) {
		t.Errorf("From = %v, want %v", m.From, want)
	}
	if want := []message.Address{{Addr: "other@xn--bcher-kva.example"}}; !cmp.Equal(m.ReplyTo, want) {
		t.Errorf("ReplyTo = %v, want %v", m.ReplyTo, want)
	}
	if want := []message.Address{{Addr: "a@example.com"}, {Name: "B, b", Addr: "b@example.com"}}; !cmp.Equal(m.To, want) {
		t.Errorf("To = %v, want %v", m.To, want)
	}
	if want := []message.Address{{Addr: "c@example.com"}, {Name: "broken", Addr: "d@example.com"}}; !cmp.Equal(m.Cc, want) {
		t.Errorf("Cc = %v, want %v", m.Cc, want)
	}
	if m.Subject != "Payment of the invoice" || m.Invisible.ZeroWidth != 1 {
		t.Errorf("Subject = %q with %+v removed", m.Subject, m.Invisible)
	}
	if want := time.Date(2025, 7, 1, 8, 52, 37, 0, time.UTC); !m.Date.Equal(want) {
		t.Errorf("Date = %v, want %v", m.Date, want)
	}
	if m.MessageID != "one@example.org" || !cmp.Equal(m.InReplyTo, []string{"zero@example.org"}) ||
		!cmp.Equal(m.References, []string{"a@example.org", "zero@example.org"}) {
		t.Errorf("ids are %q, %q, %q", m.MessageID, m.InReplyTo, m.References)
	}
	if m.Text != "Hello" || m.Body != "Hello" || m.Get("SUBJECT") != "=?utf-8?q?Pay=E2=80=8Bment?=  of the invoice" {
		t.Errorf("Text = %q, Body = %q, Subject as sent = %q", m.Text, m.Body, m.Get("subject"))
	}
}

func TestParseParts(t *testing.T) {
	t.Parallel()

	m := message.Parse(lines(
		"From: a@example.org",
		"Content-Type: multipart/mixed; boundary=out",
		"",
		"--out",
		"Content-Type: multipart/alternative; boundary=in",
		"",
		"--in",
		"Content-Type: text/plain; charset=iso-8859-1",
		"Content-Transfer-Encoding: quoted-printable",
		"",
		"Gr=FC=DFe",
		"--in",
		"Content-Type: text/html; charset=utf-8",
		"Content-Transfer-Encoding: base64",
		"",
		"PHA+R3LDvMOfZSAmYW1wOyBLw7xzc2U8L3A+",
		"--in--",
		"--out",
		"Content-Type: text/plain",
		"",
		"A footer.",
		"--out--",
	))

	if want := "Grüße & Küsse\n\nA footer."; m.Text != want {
		t.Errorf("Text = %q, want %q", m.Text, want)
	}
	if !strings.Contains(m.Raw, "Grüße\n") {
		t.Errorf("Raw = %q lacks the other alternative", m.Raw)
	}
	if len(m.Warnings) > 0 {
		t.Errorf("Warnings = %q", m.Warnings)
	}
}

func TestParsePictureAlone(t *testing.T) {
	t.Parallel()

	m := message.Parse(lines("From: a@example.org", "Content-Type: multipart/alternative; boundary=b", "",
		"--b", "", "The sale is on.", "--b", "Content-Type: text/html", "", "<img src=https://a.example/x.png>", "--b--"))

	if m.Text != "The sale is on." || m.Body != m.Text || m.Raw != m.Text+"\n" {
		t.Errorf("Text = %q, Body = %q, Raw = %q", m.Text, m.Body, m.Raw)
	}
}

func TestParseCutOff(t *testing.T) {
	t.Parallel()

	for name, raw := range map[string][]byte{
		"in a part": lines("From: a@example.org", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "The text goes"),
		"in base64": lines("From: a@example.org", "Content-Transfer-Encoding: base64", "", "VGhlIHRleHQgZ29lcyBvb"),
	} {
		if m := message.Parse(raw); !strings.HasPrefix(m.Text, "The text goes") || len(m.Warnings) != 1 {
			t.Errorf("%s: Text = %q, warnings %q", name, m.Text, m.Warnings)
		}
	}
	m := message.Parse(lines("From: a@example.org", "Content-Type: multipart/mixed; boundary=c", "", "--b", "", "The text"))
	if m.Text == "" || len(m.Warnings) == 0 {
		t.Errorf("with another boundary, Text = %q, warnings %q", m.Text, m.Warnings)
	}
}
