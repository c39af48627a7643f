package thread

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Senders holds the history of addresses and lists, and the additions of a
// chunk.
type Senders struct {
	Known map[string]signal.Sender
	added map[string]*Sender
}

// Sender is an addition to the history of an address, as it is stored.
type Sender struct {
	Address  string  `json:"address"`
	Name     string  `json:"name"`
	First    Instant `json:"first_seen"`
	Last     Instant `json:"last_seen"`
	Received int     `json:"received"`
	Sent     int     `json:"sent"`
	Replied  int     `json:"replied"`
}

// NewSenders returns empty Senders.
func NewSenders() *Senders {
	return &Senders{Known: map[string]signal.Sender{}, added: map[string]*Sender{}}
}

// listAddress returns the key of a list among the addresses.
func listAddress(id string) string { return "list:" + id }

// Of returns the history of a message's sender and list before it arrived.
func (s *Senders) Of(m *Message, settings decide.Settings) (sender, list signal.Sender) {
	sender = Marked(s.Known[m.Sender], m.Sender, settings)
	if m.List != "" {
		list = s.Known[listAddress(m.List)]
	}
	return sender, list
}

// Marked returns the history of an address with the marks of the owner's lists.
func Marked(history signal.Sender, addr string, settings decide.Settings) signal.Sender {
	history.VIP, history.Muted = listed(settings.VIP, addr), listed(settings.Muted, addr)
	return history
}

// listed reports whether an address or its domain is in a list.
func listed(list []string, addr string) bool {
	_, domain, _ := strings.Cut(addr, "@")
	return addr != "" && (slices.Contains(list, addr) || domain != "" && slices.Contains(list, domain))
}

// Received counts a received message.
func (s *Senders) Received(m *Message, t Thread) {
	counts := Sender{Received: 1}
	if t.replied {
		counts.Replied = 1
	}
	if m.Sender != "" {
		s.add(m.Sender, m.SenderName, m.Received.Time, counts)
	}
	if m.List != "" {
		s.add(listAddress(m.List), "", m.Received.Time, Sender{Received: 1})
	}
}

// Wrote counts a message of the owner: for its recipients, and for the senders
// of the messages that it answers.
func (s *Senders) Wrote(m *Message, t Thread) {
	for _, a := range slices.Concat(m.parsed.To, m.parsed.Cc) {
		if addr := address(a); addr != "" {
			s.add(addr, postgres.Clip(a.Name, maxName), m.Received.Time, Sender{Sent: 1})
		}
	}
	for _, addr := range t.senders {
		s.add(addr, "", m.Received.Time, Sender{Replied: 1})
	}
}

func (s *Senders) add(addr, name string, at time.Time, counts Sender) {
	k := s.Known[addr]
	if k.FirstSeen.IsZero() || at.Before(k.FirstSeen) {
		k.FirstSeen = at
	}
	if at.After(k.LastSeen) {
		k.LastSeen = at
	}
	k.Received, k.Sent, k.Replied = k.Received+counts.Received, k.Sent+counts.Sent, k.Replied+counts.Replied
	s.Known[addr] = k
	row := s.added[addr]
	if row == nil {
		row = &Sender{Address: addr}
		s.added[addr] = row
	}
	if name != "" {
		row.Name = name
	}
	row.First, row.Last = InstantOf(k.FirstSeen), InstantOf(k.LastSeen)
	row.Received, row.Sent, row.Replied = row.Received+counts.Received, row.Sent+counts.Sent, row.Replied+counts.Replied
}

// Rows returns the additions in a fixed order, so that two transactions cannot
// deadlock.
func (s *Senders) Rows() []Sender {
	var all []Sender
	for _, r := range s.added {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Sender) int { return strings.Compare(a.Address, b.Address) })
	return all
}
