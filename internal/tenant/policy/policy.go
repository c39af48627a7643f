// Package policy decides whether an action runs immediately (allow), waits for a
// person (require_approval) or does not run (deny), and explains the result of
// every layer. It uses no clock, table or network. It also infers a tool's risk
// and effect class.
//
// A decision is a cascade. The base layers are evaluated in order, and the first
// with a result sets the mode: the automation's override, the organisation's
// default, the mode inferred from the risk. Narrowing layers follow: each may
// make the mode stricter and none can loosen it.
//
// The package does not guess. An invalid stored value, an unknown risk and a
// tool without a name are all denied.
package policy

import (
	"strings"
	"unicode"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// maxShownValue is the number of characters of an invalid stored value that are
// repeated in a decision's source.
const maxShownValue = 40

// ParseMode parses a mode. Any text other than the three modes is fault.Invalid.
func ParseMode(text string) (envelope.Mode, error) {
	mode := envelope.Mode(text)
	if !mode.Valid() {
		return "", fault.New(fault.Invalid, "mode must be allow, require_approval or deny")
	}
	return mode, nil
}

// Stricter returns the stricter of two modes: deny before require_approval
// before allow. An invalid mode counts as deny.
func Stricter(a, b envelope.Mode) envelope.Mode {
	switch {
	case !a.Valid() || !b.Valid():
		return envelope.ModeDeny
	case strictness(string(a)) >= strictness(string(b)):
		return a
	}
	return b
}

// strictness ranks stored modes. An unknown mode is the strictest.
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
// maxShownValue, for the source or detail of a decision.
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

// plain reports whether a value can be shown unchanged, as most can.
func plain(value string) bool {
	return len(value) <= maxShownValue && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
