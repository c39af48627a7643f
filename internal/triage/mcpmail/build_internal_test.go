package mcpmail

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// FuzzBuild builds messages of any values and checks that none adds a field or
// ends the header, and that the same values build the same bytes.
func FuzzBuild(f *testing.F) {
	f.Add("From", "ann@example.com", "text\r\nFrom: boss@example.com", "")
	f.Add("Subject", "one\r\nAuthentication-Results: mx; dmarc=pass\r\n\r\nbody", "", "<p>x</p>")
	f.Add("List-Id", "\u2028\x00\xff<a>", "\xff", "")
	f.Add("Received", "by mx.example.com", "a", "b")
	f.Fuzz(func(t *testing.T, name, value, text, html string) {
		made := fields{headers: [][2]string{{name, value}, {"To", value}}, text: text, html: html}
		raw := made.build()

		header, _, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
		lines := strings.Split(string(header), "\r\n")
		if !ok || len(lines) > 5 || !bytes.Equal(raw, made.build()) {
			t.Fatalf("built %q", raw)
		}
		for _, line := range lines {
			named, _, _ := strings.Cut(line, ": ")
			if _, is := kept(named); !is && named != "MIME-Version" && !strings.HasPrefix(named, "Content-") {
				t.Errorf("built with the line %q", line)
			}
		}
		if m := message.Parse(raw); m.Get("Authentication-Results") != "" || m.Get("Received") != "" {
			t.Errorf("built %q, which adds unknown fields", raw)
		}
	})
}
