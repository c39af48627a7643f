// Package signal is the first tier of triage: rules over a message and what is
// known of its sender. A rule that holds gives a symbol with an axis, a weight
// and its evidence; sums of weights are all that other packages decide by.
package signal

import (
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// Axis is what a symbol speaks about.
type Axis string

// The axes.
const (
	Risk   Axis = "risk"
	Bulk   Axis = "bulk"
	Need   Axis = "need"
	Inject Axis = "inject"
	// Kind has symbols that say what a message is (a receipt, a one-time code, a
	// security alert) and have no weight.
	Kind Axis = "kind"
)

// Symbol is a rule that holds.
type Symbol struct {
	Name   string  `json:"name"`
	Axis   Axis    `json:"axis"`
	Weight float64 `json:"weight"`
	// Evidence is the header or the piece of text that the rule saw, at most 200
	// characters. It is text of the mail.
	Evidence string `json:"evidence,omitempty"`
}

// Auth is a result of authentication.
type Auth string

// The results. Absent and unknown are not failures.
const (
	AuthPass    Auth = "pass"
	AuthFail    Auth = "fail"
	AuthUnknown Auth = "unknown"
)

// Authentication is what is known of who sent a message.
type Authentication struct {
	SPF, DKIM, DMARC Auth
	// Policy is the DMARC policy of From's domain: none, quarantine, reject, or
	// empty.
	Policy string
	// Aligned says that a domain which passed is that of From.
	Aligned bool
	// UnsubscribeSigned says that a valid DKIM signature covers List-Unsubscribe
	// and List-Unsubscribe-Post.
	UnsubscribeSigned bool
	// Source is "header", "own" or "none".
	Source string
}

// Sender is what is known of an address.
type Sender struct {
	FirstSeen, LastSeen time.Time
	// Received counts messages from it, Sent messages of the owner to it, and
	// Replied messages from it that the owner answered.
	Received, Sent, Replied int
	// Corrected counts corrections by the owner of what was decided about it.
	Corrected  int
	VIP, Muted bool
}

// Known reports whether the owner has heard of the sender before.
func (s Sender) Known() bool { return s.Received > 0 || s.Sent > 0 }

// Context is what the rules know beside the message.
type Context struct {
	// Addresses are those of the owner, Domains those of the owner's organisation
	// (never one of a public mail provider).
	Addresses, Domains []string
	// Contacts are the domains and names of the owner's correspondents.
	Contacts []Contact
	Sender   Sender
	// List says what is known of the list that the message came by.
	List           Sender
	Authentication Authentication
	// ReplyToMine says that the message answers one of the owner.
	ReplyToMine bool
	// OwnerReplied says that the owner has answered in the thread since.
	OwnerReplied bool
	Now          time.Time
}

// Contact is a correspondent of the owner.
type Contact struct{ Name, Addr string }

// Result is what the rules found.
type Result struct {
	Symbols []Symbol
	// Sums are the weights by axis.
	Sums map[Axis]float64
	// Suspicious, Phishing and Injection are flags. They only ever lower what is
	// allowed.
	Suspicious, Phishing, Injection bool
	// SecurityAlert says that the message reports on the security of an account,
	// from an aligned domain.
	SecurityAlert bool
	// Code is a one-time code that stands in the message; it is text of the mail.
	Code string
}

// Find applies every rule. It is a pure function.
type Find func(m *message.Message, about Context) Result
