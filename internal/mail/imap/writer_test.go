package imap

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// TestWithoutMove checks moving by COPY and UID EXPUNGE, and that it is refused
// without UIDPLUS.
func TestWithoutMove(t *testing.T) {
	t.Parallel()

	s := newMemory(t, imap.CapUIDPlus, imap.CapIdle)
	t.Run("writer", func(t *testing.T) { mailboxtest.TestWriter(t, s.account) })

	bare := newMemory(t, imap.CapMove)
	a := bare.account(t)
	a.Deliver(t, "INBOX", mailboxtest.Message(1, "hello"))
	w := a.Writer(t)
	state, err := w.Find(t.Context(), mailbox.Location{Folder: "INBOX"}, mailboxtest.ID(1), mailboxtest.Identify(mailboxtest.Message(1, "hello")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Change(t.Context(), state, mailbox.Change{MoveTo: "Archive", Add: []string{mailbox.FlagSeen}}); !errors.Is(err, mailbox.ErrUnsupported) {
		t.Errorf("move without UIDPLUS: %v, want ErrUnsupported", err)
	}
	if _, err := w.Append(t.Context(), "Archive", nil, mailboxtest.Message(2, "hello")); !errors.Is(err, mailbox.ErrUnsupported) {
		t.Errorf("append without UIDPLUS: %v, want ErrUnsupported", err)
	}
	after, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{mailbox.FlagSeen}})
	if err != nil || !mailbox.HasFlag(after.Flags, mailbox.FlagSeen) || after.Folder != "INBOX" {
		t.Errorf("flags without UIDPLUS: %+v, %v", after, err)
	}
}

// TestNoKeywords checks that a server without new keywords is reported before
// anything changes.
func TestNoKeywords(t *testing.T) {
	t.Parallel()

	s := script(t, "UIDPLUS", func(command, _ string) string {
		switch command {
		case "SELECT":
			return "* 1 EXISTS\r\n* OK [PERMANENTFLAGS (\\Seen $Known)] p\r\n* OK [UIDVALIDITY 7] v\r\n{tag} OK\r\n"
		case "UID FETCH":
			return "* 1 FETCH (UID 1 FLAGS ($Known))\r\n{tag} OK\r\n"
		case "UID STORE":
			t.Error("flags were stored")
		}
		return ""
	})
	w := s.writer(t, s.config("alice"))
	state := mailbox.State{Location: mailbox.Location{Folder: "INBOX", Key: "7:1"}, Flags: []string{"$Known"}}
	for _, flag := range []string{"Countersign_receipts", mailbox.FlagFlagged} {
		if _, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{flag}}); !errors.Is(err, mailbox.ErrUnsupported) {
			t.Errorf("add %s: %v, want ErrUnsupported", flag, err)
		}
	}
}

// TestRefusedMove checks the error and the flags if the server accepts the
// flags but not the move.
func TestRefusedMove(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		caps, command, answer string
		// restores reports whether the server accepts the old flags again.
		restores bool
		want     error
		flags    string
	}{
		"refused":                    {"UIDPLUS MOVE", "UID MOVE", "NO [NOPERM] no", true, mailbox.ErrDenied, ""},
		"over a limit":               {"UIDPLUS MOVE", "UID MOVE", "NO [LIMIT] no", true, mailbox.ErrBusy, ""},
		"refused, and the flags too": {"UIDPLUS MOVE", "UID MOVE", "NO [NOPERM] no", false, errConnection, `\Seen`},
		"no answer":                  {"UIDPLUS MOVE", "UID MOVE", "BYE", true, errConnection, `\Seen`},
		"copied and not deleted":     {"UIDPLUS", "UID EXPUNGE", "NO [NOPERM] no", true, errConnection, `\Deleted`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var flags atomic.Value
			flags.Store("")
			s := script(t, test.caps, func(command, arguments string) string {
				switch command {
				case test.command:
					return "{tag} " + test.answer + "\r\n"
				case "UID COPY":
					return "{tag} OK [COPYUID 8 1 5] copied\r\n"
				case "UID FETCH":
					return "* 1 FETCH (UID 1 FLAGS (" + flags.Load().(string) + "))\r\n{tag} OK\r\n"
				case "UID STORE":
					_, list, _ := strings.Cut(arguments, "(")
					if strings.Contains(arguments, "-FLAGS") {
						if !test.restores {
							return "{tag} NO [NOPERM] no\r\n"
						}
						list = ")"
					}
					flags.Store(strings.TrimSuffix(list, ")"))
					return "{tag} OK\r\n"
				}
				return ""
			})
			w := s.writer(t, s.config("alice"))
			state := mailbox.State{Location: mailbox.Location{Folder: "INBOX", Key: "7:1"}}
			_, err := w.Change(t.Context(), state, mailbox.Change{MoveTo: "Archive", Add: []string{mailbox.FlagSeen}})
			if !errors.Is(err, test.want) || flags.Load() != test.flags {
				t.Errorf("%v with flags %q, want %v with %q", err, flags.Load(), test.want, test.flags)
			}
			for _, kind := range []error{mailbox.ErrDenied, mailbox.ErrBusy} {
				if test.want == errConnection && errors.Is(err, kind) {
					t.Errorf("%v means that nothing was changed", err)
				}
			}
		})
	}
}
