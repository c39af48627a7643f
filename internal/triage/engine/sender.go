package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// senders is what is known of addresses and lists, and what the messages of a
// chunk add to that.
type senders struct {
	known map[string]signal.Sender
	added map[string]*senderRow
}

func newSenders() *senders {
	return &senders{known: map[string]signal.Sender{}, added: map[string]*senderRow{}}
}

// listAddress is the name under which a list is kept among the addresses.
func listAddress(id string) string { return "list:" + id }

// of returns what was known of a message's sender and list before it came.
func (s *senders) of(row messageRow, settings decide.Settings) (sender, list signal.Sender) {
	sender = s.known[row.Sender]
	sender.VIP, sender.Muted = listed(settings.VIP, row.Sender), listed(settings.Muted, row.Sender)
	if row.List != "" {
		list = s.known[listAddress(row.List)]
	}
	return sender, list
}

// listed reports whether an address or its domain is in a list.
func listed(those []string, addr string) bool {
	_, domain, _ := strings.Cut(addr, "@")
	return addr != "" && (slices.Contains(those, addr) || domain != "" && slices.Contains(those, domain))
}

// received counts a message that came in.
func (s *senders) received(row messageRow, t thread) {
	counts := senderRow{Received: 1}
	if t.replied {
		counts.Replied = 1
	}
	if row.Sender != "" {
		s.add(row.Sender, row.SenderName, row.Received.Time, counts)
	}
	if row.List != "" {
		s.add(listAddress(row.List), "", row.Received.Time, senderRow{Received: 1})
	}
}

// wrote counts a message of the owner: for its recipients, and for the senders of
// what it answers.
func (s *senders) wrote(m *mail, t thread) {
	for _, a := range slices.Concat(m.message.To, m.message.Cc) {
		if addr := address(a); addr != "" {
			s.add(addr, clip(a.Name, maxName), m.item.Received, senderRow{Sent: 1})
		}
	}
	for _, addr := range t.senders {
		s.add(addr, "", m.item.Received, senderRow{Replied: 1})
	}
}

func (s *senders) add(addr, name string, at time.Time, counts senderRow) {
	k := s.known[addr]
	if k.FirstSeen.IsZero() || at.Before(k.FirstSeen) {
		k.FirstSeen = at
	}
	if at.After(k.LastSeen) {
		k.LastSeen = at
	}
	k.Received, k.Sent, k.Replied = k.Received+counts.Received, k.Sent+counts.Sent, k.Replied+counts.Replied
	s.known[addr] = k
	row := s.added[addr]
	if row == nil {
		row = &senderRow{Address: addr}
		s.added[addr] = row
	}
	if name != "" {
		row.Name = name
	}
	row.First, row.Last = instantOf(k.FirstSeen), instantOf(k.LastSeen)
	row.Received, row.Sent, row.Replied = row.Received+counts.Received, row.Sent+counts.Sent, row.Replied+counts.Replied
}
