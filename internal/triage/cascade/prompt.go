package cascade

import (
	"embed"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/visible"
)

//go:embed prompts
var prompts embed.FS

// Limits of the excerpt of a message that a model is shown, in characters.
const (
	maxSubject = 200
	maxShown   = 1200
)

// ask returns the question of a tier about messages. Only the messages differ
// between questions of the tier; they come last.
func (s spec) ask(pack []Mail) (model.Question, error) {
	system, err := prompts.ReadFile("prompts/" + s.version + ".txt")
	if err != nil {
		return model.Question{}, fmt.Errorf("read the prompt %s: %w", s.version, err)
	}
	var user strings.Builder
	for i, m := range pack {
		fmt.Fprintf(&user, "[mail %s]\nFrom: %s\nSubject: %s\n\n%s\n[end %s]\n",
			key(i), senderOf(m.Decision.Cohort), oneLine(untrusted(m.Subject, maxSubject)), untrusted(m.Body, maxShown), key(i))
	}
	return model.Question{
		System: string(system), User: user.String(), Schema: s.schema(len(pack)), MaxTokens: s.maxTokens(len(pack)), Choices: true,
	}, nil
}

// senderOf returns the kind of the sender in fixed words. Name and address are
// not shown, since anybody can choose them.
func senderOf(cohort decide.Cohort) string {
	switch cohort {
	case decide.Newsletters:
		return "a mailing list"
	case decide.Social:
		return "a social network"
	case decide.Transactional:
		return "a program"
	case decide.IntraOrg:
		return "a colleague"
	case decide.VIP, decide.CrossOrg, decide.Default:
		return "a known sender"
	case decide.FirstContact:
	}
	return "an unknown sender"
}

// untrusted returns the beginning of a text of a mail without anything that
// resembles a marker of the prompt or of a model's chat template: all brackets,
// and characters that look like them, become parentheses, so that no bracket of
// a marker can occur in any form.
func untrusted(text string, most int) string {
	// Normalising takes time that depends on the length; a character has few
	// bytes, and some are removed.
	text, _ = visible.Cut(text, 16*most)
	text = strings.Map(withoutBrackets, visible.Plain(norm.NFKC.String(visible.Plain(text))))
	return clip(fewLines(text), most)
}

// withoutBrackets returns the replacement for a character of a mail.
func withoutBrackets(r rune) rune {
	switch r {
	case '‚', '‘', '’', '‛', '‹', '›':
		return '\''
	case '„', '“', '”', '‟', '«', '»':
		return '"'
	case '<', '≮', '≪', '⋘', '≺', '⪡', '⪻', '˂', 'ᐸ':
		return '('
	case '>', '≯', '≫', '⋙', '≻', '⪢', '⪼', '˃', 'ᐳ':
		return ')'
	case '\t':
		return ' '
	}
	switch {
	case unicode.In(r, unicode.Ps, unicode.Pi):
		return '('
	case unicode.In(r, unicode.Pe, unicode.Pf):
		return ')'
	}
	return r
}

// fewLines removes trailing white space and empty lines.
func fewLines(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
		}
	}
	return b.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clip returns the first characters of a text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for i := range text {
		if most == 0 {
			return text[:i] + "…"
		}
		most--
	}
	return text
}

// clipBytes returns a name within a length, as valid UTF-8.
func clipBytes(text string, most int) string {
	text, _ = visible.Cut(text, most)
	if !utf8.ValidString(text) {
		return strings.ToValidUTF8(text, "")
	}
	return text
}
