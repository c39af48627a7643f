package decide

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// vetoRow is a row of the table of vetoes. A veto prevents a move.
type vetoRow struct {
	name, because string
	holds         func(Facts) bool
}

func vetoes() []vetoRow {
	return []vetoRow{
		{"important", "the provider marks it as important", func(f Facts) bool { return marked(f, "\\important", "$important", "important", "$label1") }},
		{"starred", "it has a star", func(f Facts) bool { return marked(f, "\\flagged", "starred") }},
		{"task_label", "its owner gave it a label that means a task", hasTaskLabel},
		{"owner_replied", "its owner has answered in the thread", func(f Facts) bool { return f.OwnerReplied }},
		{"follow_up", "its owner waits for something in the thread", func(f Facts) bool { return f.FollowUp }},
		{"security_alert", "it reports on the security of an account", func(f Facts) bool { return f.Signals.SecurityAlert || has(f, signal.SecurityAlert) }},
		{"one_time_code", "it has a one-time code that its owner is waiting for", func(f Facts) bool { return has(f, signal.OneTimeCode) }},
		{"suspicious", "it is suspicious", func(f Facts) bool { return f.Signals.Suspicious }},
		{"phishing", "it may be phishing", func(f Facts) bool { return f.Signals.Phishing }},
		{"injection", "it gives instructions to an assistant", func(f Facts) bool { return f.Signals.Injection }},
		{"touched", "its owner has moved or flagged it since", func(f Facts) bool { return f.Earlier.Touched }},
		{"undone", "its owner reversed its move", func(f Facts) bool {
			return slices.ContainsFunc(f.Earlier.Undone, func(a Action) bool { return a == Archive || a == Snooze || a == Trash })
		}},
		{"elsewhere", "it is not in the inbox", func(f Facts) bool { return f.Folder != mailbox.UseInbox }},
	}
}

// VetoReason returns why a veto holds, as a clause; empty for an unknown one.
func VetoReason(name string) string {
	for _, row := range vetoes() {
		if row.name == name {
			return row.because
		}
	}
	return ""
}

// applyVetoes records the vetoes that hold. A vetoed message is never put in
// the bucket archived.
func (s *state) applyVetoes() {
	for _, row := range vetoes() {
		if !row.holds(s.facts) {
			continue
		}
		s.decision.Vetoes = append(s.decision.Vetoes, row.name)
		if s.decision.Bucket == Archived {
			s.put(Informational, "veto "+row.name, row.because)
		} else {
			s.step("veto "+row.name, "", "stays where it is", row.because)
		}
	}
}

// IsActionTag reports whether a label requests an action. Only people set such
// labels.
func IsActionTag(label string) bool { return mailbox.IsActionTag(label) }

// ownLabel is the prefix of the labels that triage sets.
const ownLabel = "countersign_"

func marked(f Facts, names ...string) bool {
	return slices.ContainsFunc(f.Flags, func(flag string) bool { return slices.Contains(names, strings.ToLower(flag)) })
}

func hasTaskLabel(f Facts) bool {
	tasks := taskLabels()
	for _, label := range f.Settings.TaskLabels {
		tasks = append(tasks, plainLabel(label))
	}
	return slices.ContainsFunc(f.Flags, func(flag string) bool {
		lower := strings.ToLower(flag)
		if strings.HasPrefix(lower, ownLabel) {
			return false
		}
		last := lower[strings.LastIndexByte(lower, '/')+1:]
		return lower == "$label4" || slices.Contains(tasks, plainLabel(lower)) || slices.Contains(tasks, plainLabel(last))
	})
}

// taskLabels are labels that mean a task, in the form of plainLabel.
func taskLabels() []string {
	return []string{
		"action", "action required", "to do", "todo", "task", "tasks", "follow up", "followup", "waiting",
		"waiting for", "reply", "to reply", "needs reply", "pending", "urgent",
	}
}

// plainLabel returns a label in lower case, without punctuation around its
// words.
func plainLabel(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool {
		return strings.ContainsRune(" _-/.$\\@!#", r)
	})
	return strings.Join(words, " ")
}
