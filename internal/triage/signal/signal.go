// Package signal is the first tier of triage: rules over a message and the
// history of its sender. A rule that holds adds a symbol with an axis, a weight
// and its evidence; other packages decide only by the sums of weights.
//
// The flags of a Result can only lower the level: Restriction is a type
// without an operation that raises.
package signal

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

// Axis is the subject of a symbol.
type Axis string

// The axes.
const (
	Risk   Axis = "risk"
	Bulk   Axis = "bulk"
	Need   Axis = "need"
	Inject Axis = "inject"
	// Kind has symbols for the kind of a message (a receipt, a one-time code, a
	// security alert). They have no weight.
	Kind Axis = "kind"
)

// Symbol is a rule that holds.
type Symbol struct {
	Name   string  `json:"name"`
	Axis   Axis    `json:"axis"`
	Weight float64 `json:"weight"`
	// Identity reports whether the symbol is about the claimed identity of the
	// sender.
	Identity bool `json:"identity,omitempty"`
	// Evidence is the header or the piece of text that matched, at most 200
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

// Authentication is the authentication of a message's sender.
type Authentication = authenticate.Result

// Sender is the history of an address.
type Sender struct {
	FirstSeen, LastSeen time.Time
	// Received counts messages from it, Sent messages of the owner to it, and
	// Replied messages from it that the owner answered.
	Received, Sent, Replied int
	// Accepted counts approved proposals about its messages. Corrected counts
	// proposals that were denied or reversed, and corrections of decisions.
	Accepted, Corrected int
	VIP, Muted          bool
}

// Known reports whether the sender has a history.
func (s Sender) Known() bool { return s.Received > 0 || s.Sent > 0 }

// trusted reports whether the owner wrote to the sender. Earlier mail of a
// sender is no reason to trust a name.
func (s Sender) trusted() bool { return s.Sent > 0 || s.Replied > 0 || s.VIP }

// Context is the input of the rules other than the message.
type Context struct {
	// Addresses are the owner's addresses, Domains those of the owner's
	// organisation (never of a public mail provider). Both are in lower case.
	Addresses, Domains []string
	// Contacts are the owner's correspondents, or nil.
	Contacts *Contacts
	Sender   Sender
	// List is the history of the list that the message came by.
	List           Sender
	Authentication Authentication
	// ReplyToMine reports whether the message answers one of the owner.
	ReplyToMine bool
	// OwnerReplied reports whether the owner has answered in the thread since.
	OwnerReplied bool
	Now          time.Time
}

// Result is the result of the rules.
type Result struct {
	Symbols []Symbol `json:"symbols"`
	// Sums holds the weights by axis.
	Sums map[Axis]float64 `json:"sums"`
	// Suspicious, Phishing and Injection are flags. They only ever lower what
	// is allowed.
	Suspicious bool `json:"suspicious"`
	Phishing   bool `json:"phishing"`
	Injection  bool `json:"injection"`
	// SecurityAlert reports whether the message is a security notice about an
	// account, from an aligned domain.
	SecurityAlert bool `json:"security_alert"`
	// Code is the one-time code in the message. It is not stored.
	Code string `json:"-"`
	// Keeps is the reason why the text prevents moving the message.
	Keeps Keeps `json:"-"`
	// Named reports whether the text contains the owner's name.
	Named bool `json:"-"`
	// Unfamiliar reports whether the text is in a language that the models were
	// not trained on.
	Unfamiliar bool `json:"-"`
}

// Has reports whether the result has a symbol.
func (r Result) Has(name string) bool {
	return slices.ContainsFunc(r.Symbols, func(s Symbol) bool { return s.Name == name })
}

// Restriction returns the abilities that the flags forbid.
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

// The sums from which flags are set.
const (
	suspiciousFrom       = 4
	phishingFrom         = 6 // with a symbol about identity
	phishingFromUnproved = 9
	injectionFrom        = 3
)

// Find applies every rule. It is a pure function of the message and the
// context.
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

// modelPhishingOver is the probability of phishing over which the embedded
// models count. An untrained model has exactly one half.
const modelPhishingOver = 0.5

// WithModel returns the result with the embedded models' probability of
// phishing, which can set flags and clear none.
func (r Result) WithModel(phishing float64) Result {
	if !(phishing > modelPhishingOver) {
		return r
	}
	rule := ruleByName()[ModelPhishing]
	one := Symbol{Name: rule.Name, Axis: rule.Axis, Weight: rule.Weight, Identity: rule.Identity}
	out := resultOf(append(slices.Clone(r.Symbols), one))
	out.Code, out.Keeps, out.Named, out.Unfamiliar = r.Code, r.Keeps, r.Named, r.Unfamiliar
	return out
}

// resultOf sums the weights and sets the flags. Flags depend only on positive
// weights, so that no symbol can clear one.
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
