package decide

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Absent returns why a message gets no answer in its owner's absence, or "" if it
// gets one, whose senders are of the cohorts. confirm reports whether a person has to
// approve it although a grant does.
func Absent(f Facts, d Decision, cohorts []Cohort) (refused string, confirm bool) {
	junk := func(flag string) bool {
		return strings.EqualFold(flag, "$Junk") || strings.EqualFold(flag, "Junk") || strings.EqualFold(flag, "$Phishing")
	}
	switch {
	case f.Folder != mailbox.UseInbox:
		return "it is not in the inbox", false
	case slices.ContainsFunc(f.Flags, junk) || f.Signals.Suspicious || f.Signals.Phishing:
		return "it is flagged as junk, suspicious or phishing", false
	case f.Signals.Injection:
		return "the message gives instructions to an assistant", false
	case !aligned(f):
		return "authentication does not prove its sender", false
	case isMachine(f):
		return "a machine sent it", false
	case !slices.Contains(cohorts, d.Cohort):
		return "the cohort " + string(d.Cohort) + " gets no answer", false
	case d.Allowed < rowOf(Away).propose:
		return "its level allows no proposal", false
	case slices.ContainsFunc(f.Flags, func(flag string) bool { return strings.EqualFold(flag, mailbox.FlagAnswered) }):
		return "its owner has answered it", false
	}
	return "", f.Settings.ObserveOnly
}
