package contact

import (
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/envelope"
)

// Match is an entry of the do-not-contact list that a recipient matched. The
// zero value is no match.
type Match struct {
	// Kind is what kind of entry it is.
	Kind Kind
	// Reason is why an operator put it there; it may be empty.
	Reason string
}

// Ask is the recipients of one action, to be looked up in its tenant's list.
type Ask struct {
	Tenant   envelope.TenantID
	Contacts []Contact
}

// Found is an entry that a recipient of an Ask equals or belongs to.
type Found struct {
	// Ask is the index of the Ask.
	Ask int
	Match
}

// PublicReason returns the operator's reason on one line, or "" if it looks as
// though it named the recipient, or is too long to tell.
func (m Match) PublicReason() string {
	reason := m.Reason
	const longest = 300
	digits, row := 0, 0
	for _, r := range fold(reason) {
		row++
		if unicode.IsDigit(r) {
			digits++
		} else {
			row = 0
		}
		if r == '@' || row > len("2006") || digits > len("20060102") {
			return "" // a date may pass
		}
	}
	if len(reason) > longest {
		return ""
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(reason, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}
