package mailbox

import (
	"fmt"
	"slices"
	"strings"
)

// The flags that every account supports.
const (
	FlagSeen     = `\Seen`
	FlagAnswered = `\Answered`
	FlagFlagged  = `\Flagged`
	FlagDeleted  = `\Deleted`
	FlagDraft    = `\Draft`
	// FlagForwarded is a keyword, not a system flag (RFC 9051).
	FlagForwarded = "$Forwarded"
)

// Flags normalises flags and keywords: sorted, without duplicates that differ
// only in case, system flags in their usual spelling, and without \Recent,
// which belongs to a session and not to the message.
func Flags(flags ...string) []string {
	result := make([]string, 0, len(flags))
	for _, flag := range flags {
		if flag == "" || strings.EqualFold(flag, `\Recent`) {
			continue
		}
		for _, usual := range []string{FlagSeen, FlagAnswered, FlagFlagged, FlagDeleted, FlagDraft, FlagForwarded} {
			if strings.EqualFold(flag, usual) {
				flag = usual
			}
		}
		result = append(result, flag)
	}
	slices.SortFunc(result, func(a, b string) int {
		if c := strings.Compare(strings.ToLower(a), strings.ToLower(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return slices.CompactFunc(result, strings.EqualFold)
}

// HasFlag reports whether flags contain a flag, ignoring case.
func HasFlag(flags []string, flag string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return strings.EqualFold(f, flag) })
}

// ActionTag is the prefix of keywords with which an owner requests an action on a
// message.
const ActionTag = "countersign_do_"

// IsActionTag reports whether a keyword requests an action. Owners set such
// keywords in their mailboxes, and programs do not.
func IsActionTag(flag string) bool { return strings.HasPrefix(strings.ToLower(flag), ActionTag) }

// TagsAction reports whether a change sets or removes an action tag.
func (c Change) TagsAction() bool {
	return slices.ContainsFunc(c.Add, IsActionTag) || slices.ContainsFunc(c.Remove, IsActionTag)
}

// SetByPrograms reports whether mail programs and servers set a flag
// automatically, so it is not a sign of the owner's wishes.
func SetByPrograms(flag string) bool {
	switch strings.ToLower(flag) {
	case `\seen`, `\recent`, "$mdnsent", "junk", "nonjunk", "$junk", "$notjunk":
		return true
	}
	return false
}

// CheckFlag returns ErrInvalid unless the flag is a system flag or a valid
// keyword of IMAP (an atom of printable ASCII).
func CheckFlag(flag string) error {
	name, system := strings.CutPrefix(flag, `\`)
	if system {
		if usual := Flags(flag); len(usual) == 1 && slices.Contains([]string{FlagSeen, FlagAnswered, FlagFlagged, FlagDeleted, FlagDraft}, usual[0]) {
			return nil
		}
		return fmt.Errorf("flag %q: %w", flag, ErrInvalid)
	}
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`(){%*"\]`, r) }
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("keyword %q: %w", flag, ErrInvalid)
	}
	return nil
}

// Check returns ErrInvalid if a flag of the change is invalid, or both added
// and removed.
func (c Change) Check() error {
	for _, flag := range slices.Concat(c.Add, c.Remove) {
		if err := CheckFlag(flag); err != nil {
			return err
		}
	}
	for _, flag := range c.Add {
		if HasFlag(c.Remove, flag) {
			return fmt.Errorf("flag %q is both added and removed: %w", flag, ErrInvalid)
		}
	}
	return nil
}

// Apply returns flags after the change.
func (c Change) Apply(flags []string) []string {
	kept := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return HasFlag(c.Remove, flag) })
	return Flags(append(kept, c.Add...)...)
}

// Equal reports whether two states have the same folder and flags, ignoring
// keys.
func (s State) Equal(other State) bool {
	return s.Folder == other.Folder && slices.EqualFunc(Flags(s.Flags...), Flags(other.Flags...), strings.EqualFold)
}

// ChangeTo returns the change that makes a state equal to another, such as the
// one before a change.
func (s State) ChangeTo(other State) Change {
	var change Change
	if s.Folder != other.Folder {
		change.MoveTo = other.Folder
	}
	for _, flag := range Flags(other.Flags...) {
		if !HasFlag(s.Flags, flag) {
			change.Add = append(change.Add, flag)
		}
	}
	for _, flag := range Flags(s.Flags...) {
		if !HasFlag(other.Flags, flag) {
			change.Remove = append(change.Remove, flag)
		}
	}
	return change
}

// UseOf guesses the use of a folder from the last level of its name, for
// accounts that do not report it. It matches the names of common programs in
// English and German.
func UseOf(name, separator string) Use {
	if strings.EqualFold(name, "INBOX") {
		return UseInbox
	}
	last := name
	if separator != "" {
		last = name[strings.LastIndex(name, separator)+1:]
	}
	switch strings.ToLower(last) {
	case "sent", "sent items", "sent mail", "sent messages", "gesendet", "gesendete elemente", "gesendete objekte":
		return UseSent
	case "drafts", "draft", "entwürfe":
		return UseDrafts
	case "archive", "archives", "archiv":
		return UseArchive
	case "trash", "deleted items", "deleted messages", "bin", "papierkorb", "gelöschte elemente":
		return UseTrash
	case "junk", "spam", "junk e-mail", "junk email", "bulk mail", "junk-e-mail":
		return UseJunk
	case "all mail", "alle nachrichten":
		return UseAll
	case "snoozed", "zurückgestellt":
		return UseSnoozed
	}
	return UseOther
}
