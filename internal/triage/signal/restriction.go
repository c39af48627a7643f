package signal

import "strings"

// Ability is an action on or by a message that can be forbidden.
type Ability uint8

// The abilities.
const (
	// AutomaticMove is a move without approval: archiving, snoozing, trash.
	AutomaticMove Ability = iota
	// Attention is a bucket of messages that need the owner.
	Attention
	// Pack is a question to a model together with other messages.
	Pack
	// Draft is a reply written in advance.
	Draft
	// Links is showing the links of the message as links.
	Links
	// Tools is every tool except reporting and quarantine with undo.
	Tools
)

// abilities lists every Ability with its name.
func abilities() []string {
	return []string{"automatic_move", "attention", "pack", "draft", "links", "tools"}
}

// Restriction is a set of forbidden abilities. The zero value forbids nothing.
// Restrictions can be joined and queried; no operation returns a weaker one.
type Restriction struct{ forbidden uint8 }

// Forbid returns a restriction of these abilities.
func Forbid(denied ...Ability) Restriction {
	var r Restriction
	for _, a := range denied {
		r.forbidden |= 1 << a
	}
	return r
}

// Join returns a restriction that forbids what either forbids.
func (r Restriction) Join(other Restriction) Restriction {
	return Restriction{r.forbidden | other.forbidden}
}

// Allows reports whether an ability is not forbidden.
func (r Restriction) Allows(a Ability) bool { return r.forbidden&(1<<a) == 0 }

// String lists the forbidden abilities.
func (r Restriction) String() string {
	var names []string
	for i, name := range abilities() {
		if !r.Allows(Ability(i)) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
