// Package policy decides, without a clock, a table or a network, whether an
// action runs at once (allow), waits for a person (require_approval) or does
// not run (deny), and says which layer decided and what every other layer
// had to say. It infers a tool's risk and effect class from what is known of
// it.
//
// A decision is a cascade. The base layers are asked in order and the first
// that speaks sets the mode: the automation's override, the organisation's
// default, the mode inferred from risk. Narrowing layers follow: each may make
// the mode stricter and none can loosen it.
//
// The package does not guess. A stored value that it cannot read, an
// unknown risk and a nameless tool are all denied.
package policy

import (
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// maxShownValue is how many characters of an unreadable stored value are
// repeated in a decision's source.
const maxShownValue = 40

// ParseMode reads a mode as it is stored and sent. Anything but the three
// modes, spelled exactly, is fault.Invalid.
func ParseMode(text string) (envelope.Mode, error) {
	mode := envelope.Mode(text)
	if !mode.Valid() {
		return "", fault.New(fault.Invalid, "mode must be allow, require_approval or deny")
	}
	return mode, nil
}

// Stricter returns the stricter of two modes: deny before require_approval
// before allow. A value that is no mode counts as deny.
func Stricter(a, b envelope.Mode) envelope.Mode {
	switch {
	case !a.Valid() || !b.Valid():
		return envelope.ModeDeny
	case strictness(string(a)) >= strictness(string(b)):
		return a
	}
	return b
}

// strictness orders modes as they are stored. An unknown mode is the strictest.
func strictness(mode string) int {
	switch envelope.Mode(mode) {
	case envelope.ModeAllow:
		return 0
	case envelope.ModeRequireApproval:
		return 1
	case envelope.ModeDeny:
		return 2
	}
	return 3
}

// shown returns the printable characters of a stored value, at most
// maxShownValue, for the source or a detail of a decision.
func shown(value string) string {
	if plain(value) {
		return value
	}
	var b strings.Builder
	count := 0
	for _, r := range value {
		if count == maxShownValue {
			break
		}
		if r != unicode.ReplacementChar && unicode.IsPrint(r) {
			b.WriteRune(r)
			count++
		}
	}
	return b.String()
}

// plain reports whether a value can be shown as it is, which most can.
func plain(value string) bool {
	return len(value) <= maxShownValue && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
