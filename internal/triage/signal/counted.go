package signal

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// Counted returns the history of a sender and of a list that counts for a
// message. Since anybody can write their names, the sender must be proven, and
// the list's domain must be one that passed. Mutes always count. Without any
// result of authentication the names are the only information, so their history
// counts, although nothing is proven.
func Counted(a Authentication, sender, list Sender) (countedSender, countedList Sender) {
	if a.Asked() && !a.Proven() {
		sender = Sender{Muted: sender.Muted}
	}
	if a.Asked() && !a.ListAligned {
		list = Sender{Muted: list.Muted}
	}
	return sender, list
}

// Participates reports whether a message may take part in a conversation: its
// sender, or somebody of the sender's organisation, or its list is among the
// participants. As in Counted, an unproven name does not count.
func Participates(a Authentication, sender, list string, participants []string) bool {
	lex := loaded()
	organisation := func(domain string) string {
		if lex.freemail[domain] {
			return ""
		}
		return domain
	}
	among := func(domain string) bool {
		return domain != "" && slices.ContainsFunc(participants, func(p string) bool { return lookalike.Registrable(lookalike.DomainOf(p)) == domain })
	}
	if (!a.Asked() || a.Proven()) && sender != "" &&
		(slices.Contains(participants, sender) || among(organisation(lookalike.Registrable(lookalike.DomainOf(sender))))) {
		return true
	}
	return (!a.Asked() || a.ListAligned) && list != "" && among(organisation(lookalike.Registrable(list)))
}
