package signal

import "github.com/countersign-dev/countersign/internal/mail/message"

// Keeps is a reason for which a text keeps a message where it is. More text adds
// reasons, and never takes one away: each looks for something that is anywhere in
// the subject or the text that is shown, weighs nothing against anything, and
// reads nothing but what is there.
type Keeps string

// The reasons.
const (
	// KeepsNothing is no reason.
	KeepsNothing Keeps = ""
	// KeepsWords is a word of those lists that ask, warn or set a time.
	KeepsWords Keeps = "words"
	// KeepsQuestion is a question mark at the end of a sentence.
	KeepsQuestion Keeps = "question"
	// KeepsInvitation is an invitation to answer.
	KeepsInvitation Keeps = "invitation"
	// KeepsLanguage is a part in another language than that of the words.
	KeepsLanguage Keeps = "language"
	// KeepsChange is a word that tells of a change; it keeps what a machine sent to
	// the owner alone, and no mail that is one of many alike.
	KeepsChange Keeps = "change"
	// KeepsLength is more text than is read.
	KeepsLength Keeps = "length"
)

// keepLists are the lists of which any phrase keeps a message.
func keepLists() []list {
	return []list{keep, urgency, credential, payment, bank, giftCard, advanceFee, extortion, secrecy, office, internal, oneTimeCode, security, deadline}
}

func (f *finder) keeps() Keeps {
	for _, l := range keepLists() {
		if f.found.has(l) {
			return KeepsWords
		}
	}
	text := f.m.Subject + "\n" + f.m.Text
	switch {
	case questionMark(text) >= 0:
		return KeepsQuestion
	case f.has(ICSRequest):
		return KeepsInvitation
	case len(f.m.Subject) > maxSubject || len(f.m.Text) > 2*maxText:
		return KeepsLength
	case message.Foreign(text):
		return KeepsLanguage
	case f.found.has(change):
		return KeepsChange
	}
	return KeepsNothing
}
