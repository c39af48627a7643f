package signal

import "slices"

// Counted returns how much of the history of a sender and of a list counts for a
// message. Anybody can write their names: the sender has to be proven, and the
// list's domain has to be one that passed. Mutes count all the same. Where
// nothing could be found out about who sent the message, the names are all that
// is known, and their history counts; nothing is proven by it.
func Counted(a Authentication, sender, list Sender) (countedSender, countedList Sender) {
	if a.Asked() && !a.Proven() {
		sender = Sender{Muted: sender.Muted}
	}
	if a.Asked() && !a.ListAligned {
		list = Sender{Muted: list.Muted}
	}
	return sender, list
}

// Participates reports whether a message may speak in a conversation of these
// participants: its sender, or another of the sender's organisation, is one of
// them, or the list that it came by is. As for Counted, a name that is not proven
// is nobody's.
func Participates(a Authentication, sender, list string, participants []string) bool {
	lex := loaded()
	organisation := func(domain string) string {
		if lex.freemail[domain] {
			return ""
		}
		return domain
	}
	among := func(domain string) bool {
		return domain != "" && slices.ContainsFunc(participants, func(p string) bool { return registrable(domainOf(p)) == domain })
	}
	if (!a.Asked() || a.Proven()) && sender != "" &&
		(slices.Contains(participants, sender) || among(organisation(registrable(domainOf(sender))))) {
		return true
	}
	return (!a.Asked() || a.ListAligned) && list != "" && among(organisation(registrable(list)))
}
