package message_test

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

func TestParseCharsets(t *testing.T) {
	t.Parallel()

	const (
		german   = "Grüße aus Köln – wir hätten gern zwölf Stück."
		russian  = "Здравствуйте! Забор уже покрашен, а ворота мы хотели бы сделать в эту пятницу."
		japanese = "フェンスの塗装が終わりました。門は金曜日に行います。"
	)
	for name, c := range map[string]struct {
		declared, text string
		as             encoding.Encoding
		warned         bool
	}{
		"as declared":                     {"windows-1252", german, charmap.Windows1252, false},
		"in quotes and capitals":          {`"WINDOWS-1252"`, german, charmap.Windows1252, false},
		"seven bits":                      {"iso-2022-jp", japanese, iso2022(), false},
		"UTF-16":                          {"utf-16", german, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), false},
		"UTF-8 that was not declared":     {"", german, encoding.Nop, false},
		"UTF-8 that was declared Latin-1": {"iso-8859-1", german, encoding.Nop, false},
		"UTF-8 that was declared ASCII":   {"us-ascii", russian, encoding.Nop, false},
		"not declared":                    {"", german, charmap.Windows1252, true},
		"declared UTF-8":                  {"utf-8", german, charmap.Windows1252, true},
		"unknown":                         {"x-unknown", russian, charmap.KOI8R, true},
		"Cyrillic that was not declared":  {"", russian, charmap.Windows1251, true},
	} {
		encoded, err := c.as.NewEncoder().String(c.text)
		if err != nil {
			t.Fatal(err)
		}
		header := "From: a@example.org\nContent-Type: text/plain"
		if c.declared != "" {
			header += "; charset=" + c.declared
		}

		m := message.Parse([]byte(header + "\n\n" + encoded))

		if m.Text != c.text || len(m.Warnings) > 0 != c.warned {
			t.Errorf("%s: Text = %q, warnings %q, want %q", name, m.Text, m.Warnings, c.text)
		}
	}
}

func iso2022() encoding.Encoding { return japanese.ISO2022JP }
