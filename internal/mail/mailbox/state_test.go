package mailbox

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFlags(t *testing.T) {
	t.Parallel()

	got := Flags(`\seen`, "b", `\Recent`, "A", "a", "", `\Seen`, "$forwarded")
	want := []string{"$Forwarded", `\Seen`, "A", "b"}
	if !slices.Equal(got, want) {
		t.Errorf("Flags = %q, want %q", got, want)
	}
	if got := Flags(); got == nil || len(got) != 0 {
		t.Errorf("Flags() = %#v, want an empty list that is not nil", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()

	for flag, valid := range map[string]bool{
		`\Seen`: true, `\sEEN`: true, "Countersign_receipts": true, "$Important": true,
		`\Recent`: false, `\Own`: false, `\`: false, "": false, "two words": false, "a(b": false, "ä": false, "a\r\nX": false,
	} {
		if err := CheckFlag(flag); (err == nil) != valid || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("CheckFlag(%q) = %v, want valid: %t", flag, err, valid)
		}
	}
	if err := (Change{Add: []string{"a"}, Remove: []string{"A"}}).Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a flag both added and removed: %v, want ErrInvalid", err)
	}
}

// TestRestore checks that ChangeTo reverses every change.
func TestRestore(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		flags := rapid.SliceOf(rapid.SampledFrom([]string{`\Seen`, `\Flagged`, "a", "A", "b", "$Forwarded"}))
		folder := rapid.SampledFrom([]string{"INBOX", "Archive"})
		before := State{Location{folder.Draw(t, "folder"), "1"}, Flags(flags.Draw(t, "flags")...)}
		add := flags.Draw(t, "add")
		remove := slices.DeleteFunc(flags.Draw(t, "remove"), func(f string) bool { return HasFlag(add, f) })
		apply := func(s State, c Change) State {
			if c.MoveTo != "" {
				s.Folder, s.Key = c.MoveTo, s.Key+"+"
			}
			s.Flags = c.Apply(s.Flags)
			return s
		}

		after := apply(before, Change{MoveTo: folder.Draw(t, "to"), Add: add, Remove: remove})
		restored := apply(after, after.ChangeTo(before))

		if !restored.Equal(before) {
			t.Errorf("%v restored from %v is %v", before, after, restored)
		}
	})
}

func TestUseOf(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]Use{
		"inbox": UseInbox, "INBOX/Sent": UseSent, "[Gmail]/All Mail": UseAll, "Entwürfe": UseDrafts,
		"Archive": UseArchive, "Work/Inbox": UseOther, "Sentiment": UseOther, "": UseOther,
	} {
		if got := UseOf(name, "/"); got != want {
			t.Errorf("UseOf(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()

	err := error(&BusyError{Reason: "too many connections", After: 90 * time.Second})
	if !errors.Is(err, ErrBusy) || RetryAfter(err) != 90*time.Second || RetryAfter(ErrGone) != 0 {
		t.Errorf("busy: %v, after %s", err, RetryAfter(err))
	}
}
