package signal

import "strings"

// Ability is something that may be done with a message or by it.
type Ability uint8

// The abilities.
const (
	// AutomaticMove is a move that nobody agreed to: archiving, snoozing, trash.
	AutomaticMove Ability = iota
	// Attention is a bucket that says that the message needs its owner.
	Attention
	// Pack is being shown to a model together with other messages.
	Pack
	// Draft is a reply written in advance.
	Draft
	// Links is the links of the message, shown as links.
	Links
	// Tools is every tool but reporting and quarantining with undo.
	Tools
)

// abilities lists every Ability with its name.
func abilities() []string {
	return []string{"automatic_move", "attention", "pack", "draft", "links", "tools"}
}

// Restriction is a set of abilities that are forbidden. The zero value forbids
// nothing. Restrictions can be joined and asked; there is no operation that
// returns one that forbids less than what it was given.
type Restriction struct{ forbidden uint8 }

// Forbid returns a restriction of these abilities.
func Forbid(those ...Ability) Restriction {
	var r Restriction
	for _, a := range those {
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

// String lists what is forbidden.
func (r Restriction) String() string {
	var names []string
	for i, name := range abilities() {
		if !r.Allows(Ability(i)) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
