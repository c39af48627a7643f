package engine

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// touchedBy reports whether a change of flags is the owner's, and which actions of
// triage it takes back. proposed are "action value" of what triage proposed to
// add to the message. Flags that a mail program sets by itself do not count.
func touchedBy(before, after, proposed []string) (touchedRow, bool) {
	t := touchedRow{Undone: []string{}}
	mine := func(flag string) string {
		for _, p := range proposed {
			action, value, _ := strings.Cut(p, " ")
			if strings.EqualFold(value, flag) {
				return action
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

// counts reports whether a flag says what the owner wants with a message.
func counts(flag string) bool {
	switch strings.ToLower(flag) {
	case `\seen`, `\recent`, `\answered`, `\draft`, "$forwarded", "$mdnsent", "junk", "nonjunk", "$junk", "$notjunk":
		return false
	}
	return true
}
