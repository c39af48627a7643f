package guide

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// How much of a source's texts a guide repeats, in characters.
const (
	maxTitle       = 200
	maxDescription = 1000
	maxName        = 300
)

// quote writes a text of a source between quotation marks as a code span of
// Markdown, in one line. A character that does not show, that moves what is
// read, or that could end the span stands there as \u{…}.
func quote(text string, most int) string { return span(`"` + escaped(text, most) + `"`) }

// code writes a name as a code span of Markdown, in one line: as it stands,
// where that can be.
func code(name string) string { return span(escaped(name, maxName)) }

func span(text string) string { return "`" + text + "`" }

// codes are several names.
func codes(names []string) string {
	spans := make([]string, len(names))
	for i, name := range names {
		spans[i] = code(name)
	}
	return strings.Join(spans, ", ")
}

// escaped cuts a text to most characters and takes from it what could be more
// than text.
func escaped(text string, most int) string {
	cut := text
	if utf8.RuneCountInString(text) > most {
		n := 0
		for i := range text {
			if n == most {
				cut = text[:i] + "…"
				break
			}
			n++
		}
	}
	shown, _ := catalog.Reveal(cut)
	return strings.NewReplacer("`", `\u{60}`, "\n", `\n`, "\t", `\t`, `"`, `\"`).Replace(shown)
}
