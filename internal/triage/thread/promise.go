package thread

import (
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

var (
	// promiseForm is a sentence in which the writer promises an act.
	promiseForm = regexp.MustCompile(`(?i)\b(?:i|we)(?:['’]ll| will| shall|['’]m going to| am going to| are going to)\s+(?:\pL+\s+){0,2}?(?:send|share|forward|e-?mail|mail|get back|come back to you|let you know|provide|prepare|finish|deliver|reply|respond|answer|follow up|update|review|check|call|write|upload|submit|pay|transfer|fix|look into)\b` +
		`|\b(?:schicke|sende|maile|liefere|überweise|prüfe|erledige|melde|reiche|leite|gebe)\s+(?:ich|wir)\b|\bich\s+(?:schicke|sende|maile|liefere|überweise|prüfe|erledige|melde mich|reiche|leite|gebe)\b` +
		`|\b(?:ich werde|wir werden|werde ich|werden wir)\b[^.!?\n]{0,120}\b(?:schicken|zuschicken|senden|zusenden|mailen|melden|liefern|nachreichen|einreichen|überweisen|prüfen|erledigen|antworten|weiterleiten|geben)\b`)
	// noPromiseForm is a refusal, a condition or a report about the past.
	noPromiseForm = regexp.MustCompile(`(?i)\b(?:not|never|nicht|nie|kein|keine)\b|^\s*(?:if|unless|when|once|should|wenn|falls|sobald|sofern)\b`)
	// deliverForm is a sentence with which the writer sends or reports something.
	deliverForm = regexp.MustCompile(`(?i)\b(?:attached|enclosed|please find|here (?:is|are)|here['’]s|as promised|i (?:have|just) (?:sent|paid|uploaded|submitted|finished)|anbei|beigefügt|im anhang|angehängt|wie versprochen|hier (?:ist|sind|kommt|kommen)|erledigt|ist überwiesen)\b`)
)

// Pledge holds what a mail of the owner promises and has.
type Pledge struct {
	Promises bool `json:"promises"`
	Delivers bool `json:"delivers"`
}

// PledgeOf returns the pledge of a mail.
func PledgeOf(m *message.Message) Pledge { return Pledge{Promises(m.Body), Delivers(m)} }

// maxPromising bounds the text that is read for promises.
const maxPromising = 16 << 10

// sentencesOf returns the sentences of the beginning of a text, without quoted lines.
func sentencesOf(text string) (all []string) {
	if len(text) > maxPromising {
		text = strings.ToValidUTF8(text[:maxPromising], "")
	}
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(l), ">") {
			continue
		}
		all = append(all, strings.FieldsFunc(l, func(r rune) bool { return strings.ContainsRune(".!?。\n", r) })...)
	}
	return all
}

// Promises reports whether the writer of a text promises an act in it, in English or
// German.
func Promises(text string) bool {
	for _, s := range sentencesOf(text) {
		if promiseForm.MatchString(s) && !noPromiseForm.MatchString(s) {
			return true
		}
	}
	return false
}

// Delivers reports whether a mail has a promised thing: an attachment, or a sentence that
// announces it and promises nothing.
func Delivers(m *message.Message) bool {
	for _, a := range m.Attachments {
		if a.Name != "" {
			return true
		}
	}
	for _, s := range sentencesOf(m.Body) {
		if deliverForm.MatchString(s) && !promiseForm.MatchString(s) && !noPromiseForm.MatchString(s) {
			return true
		}
	}
	return false
}
