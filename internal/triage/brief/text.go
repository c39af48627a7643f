package brief

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
)

// Text returns a brief as plain text, in lines.
func Text(b wire.TriageBrief) string {
	var out strings.Builder
	out.WriteString(plain(Title(b)) + "\n")
	for _, s := range sections(b) {
		out.WriteString("\n" + plain(s.title) + "\n")
		width := 0
		for _, l := range s.lines {
			width = max(width, utf8.RuneCountInString(plain(l.mark)))
		}
		for _, l := range s.lines {
			fmt.Fprintf(&out, "  %-*s  %s\n", width, plain(l.mark), plain(l.text))
		}
		if s.more > 0 {
			out.WriteString("  " + omitted(s.more) + "\n")
		}
		if s.note != "" {
			out.WriteString("  " + plain(s.note) + "\n")
		}
	}
	return out.String()
}

// Markdown returns a brief as Markdown. Texts of mail are escaped: they form no markup
// and no links.
func Markdown(b wire.TriageBrief) string {
	var out strings.Builder
	out.WriteString("# " + escape(Title(b)) + "\n")
	for _, s := range sections(b) {
		out.WriteString("\n## " + escape(s.title) + "\n\n")
		for _, l := range s.lines {
			fmt.Fprintf(&out, "- **%s** %s\n", escape(l.mark), escape(l.text))
		}
		if s.more > 0 {
			out.WriteString("- " + omitted(s.more) + "\n")
		}
		if s.note != "" {
			if len(s.lines) > 0 {
				out.WriteString("\n")
			}
			out.WriteString(escape(s.note) + "\n")
		}
	}
	return out.String()
}

// escape returns a text in one line in which Markdown finds no markup: every
// punctuation mark of ASCII that can form some is escaped.
func escape(text string) string {
	var out strings.Builder
	for _, r := range plain(text) {
		if r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) && !strings.ContainsRune(",;'\"?%/", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
