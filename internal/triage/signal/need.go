package signal

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

func (f *finder) need() {
	to, cc := f.addressed(f.m.To), f.addressed(f.m.Cc)
	if to && len(f.m.To) == 1 && len(f.m.Cc) == 0 {
		f.add(ToMeAlone, f.m.To[0].Addr)
	}
	if cc && !to {
		f.add(CcOnly, "")
	}
	if f.about.ReplyToMine {
		f.add(ReplyToMine, f.subject)
	}
	if strings.EqualFold(f.m.Calendar, "REQUEST") {
		f.add(ICSRequest, f.subject)
	}
	if f.about.Sender.VIP {
		f.add(VIP, f.from.Addr)
	}
	if f.about.Sender.Sent > 0 {
		f.add(KnownCorrespondent, f.from.Addr)
	}
}

// addressed reports whether the owner is among the addresses.
func (f *finder) addressed(list []message.Address) bool {
	return slices.ContainsFunc(list, func(a message.Address) bool { return f.own(a.Addr) })
}

// own reports whether an address is the owner's, with or without an extension
// (anna+shop@example.org).
func (f *finder) own(addr string) bool {
	if slices.Contains(f.about.Addresses, addr) {
		return true
	}
	plus := strings.IndexByte(addr, '+')
	at := strings.LastIndexByte(addr, '@')
	return plus > 0 && plus < at && slices.Contains(f.about.Addresses, addr[:plus]+addr[at:])
}

// ownDomain reports whether a host is of the owner's organisation.
func (f *finder) ownDomain(host string) bool {
	return slices.ContainsFunc(f.about.Domains, func(own string) bool { return host == own || strings.HasSuffix(host, "."+own) })
}

// minName is the least number of letters of a name that is searched.
const minName = 3

// named reports whether the subject or the text contains a first name of the
// owner, taken from the owner's addresses and the recipients' display names.
func (f *finder) named() bool {
	names := map[string]bool{}
	add := func(name string) {
		if first, _, _ := strings.Cut(plainWords(name), " "); len(first) >= minName {
			names[first] = true
		}
	}
	for _, addr := range f.about.Addresses {
		add(lookalike.LocalOf(addr))
	}
	for _, a := range slices.Concat(f.m.To, f.m.Cc) {
		if f.own(a.Addr) {
			add(a.Name)
		}
	}
	for word := range strings.FieldsSeq(plainWords(f.subject + " " + clipBytes(f.m.Body))) {
		if names[word] {
			return true
		}
	}
	return false
}
