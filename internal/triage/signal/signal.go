// Package signal is the first tier of triage: rules over a message and what is
// known of its sender. A rule that holds gives a symbol with an axis, a weight
// and its evidence; sums of weights are all that other packages decide by.
//
// The flags that a Result has only ever lower what is allowed: Restriction is a
// type without an operation that raises.
package signal

import (
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
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
	// Identity says that the symbol speaks about who the sender claims to be.
	Identity bool `json:"identity,omitempty"`
	// Evidence is the header or the piece of text that the rule saw, at most 200
	// characters. It is text of the mail.
	Evidence string `json:"evidence,omitempty"`
}

// Auth is a result of authentication.
type Auth = authenticate.Status

// The results. Absent and unknown are not failures.
const (
	AuthPass    = authenticate.Pass
	AuthFail    = authenticate.Fail
	AuthUnknown = authenticate.Unknown
)

// Authentication is what is known of who sent a message.
type Authentication = authenticate.Result

// Sender is what is known of an address.
type Sender struct {
	FirstSeen, LastSeen time.Time
	// Received counts messages from it, Sent messages of the owner to it, and
	// Replied messages from it that the owner answered.
	Received, Sent, Replied int
	// Accepted counts proposals about its messages that a person approved, and
	// Corrected those that were denied or taken back, and corrections of what was
	// decided about it.
	Accepted, Corrected int
	VIP, Muted          bool
}

// Known reports whether the owner has heard of the sender before.
func (s Sender) Known() bool { return s.Received > 0 || s.Sent > 0 }

// trusted reports whether the owner wrote to the sender: that a sender wrote
// before is no reason to believe a name.
func (s Sender) trusted() bool { return s.Sent > 0 || s.Replied > 0 || s.VIP }

// Context is what the rules know beside the message.
type Context struct {
	// Addresses are those of the owner, Domains those of the owner's organisation
	// (never one of a public mail provider). Both are in lower case.
	Addresses, Domains []string
	// Contacts are the owner's correspondents; nil without.
	Contacts *Contacts
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

// Result is what the rules found.
type Result struct {
	Symbols []Symbol `json:"symbols"`
	// Sums are the weights by axis.
	Sums map[Axis]float64 `json:"sums"`
	// Suspicious, Phishing and Injection are flags. They only ever lower what is
	// allowed.
	Suspicious bool `json:"suspicious"`
	Phishing   bool `json:"phishing"`
	Injection  bool `json:"injection"`
	// SecurityAlert says that the message reports on the security of an account,
	// from an aligned domain.
	SecurityAlert bool `json:"security_alert"`
	// Code is a one-time code that stands in the message; it is text of the mail.
	Code string `json:"code,omitempty"`
	// Keeps is why the text keeps the message where it is.
	Keeps Keeps `json:"-"`
	// Named says that the text has the owner's name.
	Named bool `json:"-"`
	// Unfamiliar says that the text is in a language that the models did not learn.
	Unfamiliar bool `json:"-"`
}

// Has reports whether a symbol was found.
func (r Result) Has(name string) bool {
	for _, s := range r.Symbols {
		if s.Name == name {
			return true
		}
	}
	return false
}

// Restriction returns what the flags forbid.
func (r Result) Restriction() Restriction {
	var forbidden Restriction
	if r.SecurityAlert {
		forbidden = forbidden.Join(Forbid(AutomaticMove))
	}
	if r.Suspicious {
		forbidden = forbidden.Join(Forbid(AutomaticMove, Pack, Draft))
	}
	if r.Injection {
		forbidden = forbidden.Join(Forbid(AutomaticMove, Pack, Draft, Tools))
	}
	if r.Phishing {
		forbidden = forbidden.Join(Forbid(AutomaticMove, Attention, Pack, Draft, Links, Tools))
	}
	return forbidden
}

// The sums from which a flag holds.
const (
	suspiciousFrom       = 4
	phishingFrom         = 6 // with a symbol about identity
	phishingFromUnproved = 9
	injectionFrom        = 3
)

// Find applies every rule. It is a pure function: the same message and context
// give the same result.
func Find(m *message.Message, about Context) Result {
	f := newFinder(m, about)
	f.texts()
	f.authentication()
	f.bulk()
	f.sender()
	f.words()
	f.replyTo()
	f.links()
	f.attachments()
	f.injection()
	f.hidden()
	f.kinds()
	f.need()
	f.question()
	r := resultOf(f.symbols)
	r.Code = f.oneTimeCode
	r.Keeps, r.Named = f.keeps(), f.named()
	text := f.subject + "\n" + clipBytes(m.Text)
	r.Unfamiliar = message.Foreign(text) && !message.Familiar(text)
	return r
}

// resultOf sums the weights and sets the flags. The flags are computed from the
// positive weights alone, so that no symbol takes a flag away, whatever its
// weight.
func resultOf(symbols []Symbol) Result {
	r := Result{Symbols: symbols, Sums: make(map[Axis]float64, 4)}
	var risk, inject float64
	identity := false
	for _, s := range symbols {
		r.Sums[s.Axis] += s.Weight
		switch s.Axis {
		case Risk:
			risk += max(0, s.Weight)
			identity = identity || s.Identity
		case Inject:
			inject += max(0, s.Weight)
		case Kind:
			r.SecurityAlert = r.SecurityAlert || s.Name == SecurityAlert
		case Bulk, Need:
		}
	}
	r.Suspicious = risk >= suspiciousFrom
	r.Phishing = risk >= phishingFromUnproved || identity && risk >= phishingFrom
	r.Injection = inject >= injectionFrom
	return r
}
