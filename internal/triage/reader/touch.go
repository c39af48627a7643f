package reader

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// touchedBy reports whether a change of flags is the owner's, and which actions
// of triage it reverses. proposed holds the proposed actions on the message,
// and prefix the prefix of labels. Flags that mail programs set automatically
// do not count.
func touchedBy(before, after []string, proposed []plan.Part, prefix string) (touchedRow, bool) {
	t := touchedRow{Touched: true, Undone: []string{}}
	mine := func(flag string) string {
		for _, p := range proposed {
			if p.Action == decide.Label && strings.EqualFold(prefix+p.Target, flag) || p.Action == decide.Flag && strings.EqualFold(p.Target, flag) {
				return string(p.Action)
			}
		}
		return ""
	}
	owner := false
	for _, flag := range after {
		if !mailbox.HasFlag(before, flag) && counts(flag) && mine(flag) == "" {
			owner = true
		}
	}
	for _, flag := range before {
		if mailbox.HasFlag(after, flag) || !counts(flag) {
			continue
		}
		owner = true
		if action := mine(flag); action != "" && !slices.Contains(t.Undone, action) {
			t.Undone = append(t.Undone, action)
		}
	}
	return t, owner
}

// counts reports whether a flag expresses a wish of the owner.
func counts(flag string) bool {
	switch strings.ToLower(flag) {
	case `\answered`, `\draft`, "$forwarded":
		return false
	}
	return !mailbox.SetByPrograms(flag)
}

// unexpected reports whether a source refuses a call that expects the flags before:
// it tolerates the flags that programs set, and no others.
func unexpected(before, after []string) bool {
	differs := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(flag string) bool { return !mailbox.HasFlag(b, flag) && !mailbox.SetByPrograms(flag) })
	}
	return differs(before, after) || differs(after, before)
}
