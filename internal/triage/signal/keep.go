package signal

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// Keeps is a reason why a text prevents moving its message. More text can only
// add reasons: each rule matches something anywhere in the subject or the
// visible text, without weights and without counting.
type Keeps string

// The reasons.
const (
	// KeepsNothing means no reason.
	KeepsNothing Keeps = ""
	// KeepsWords is a word of the lists that ask, warn or set a deadline.
	KeepsWords Keeps = "words"
	// KeepsQuestion is a question mark at the end of a sentence.
	KeepsQuestion Keeps = "question"
	// KeepsInvitation is an invitation to reply.
	KeepsInvitation Keeps = "invitation"
	// KeepsLanguage is a part in a language that the lists do not cover.
	KeepsLanguage Keeps = "language"
	// KeepsChange is a word about a change. It only keeps automated mail for
	// the owner alone, not bulk mail.
	KeepsChange Keeps = "change"
	// KeepsLength is a text longer than the limit that is read.
	KeepsLength Keeps = "length"
)

// keepLists are the lists of which any phrase keeps a message.
func keepLists() []list {
	return []list{keep, urgency, credential, payment, bank, giftCard, advanceFee, extortion, secrecy, office, internal, oneTimeCode, security, deadline}
}

func (f *finder) keeps() Keeps {
	if slices.ContainsFunc(keepLists(), f.found.has) {
		return KeepsWords
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
