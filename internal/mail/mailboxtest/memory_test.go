package mailboxtest_test

import (
	"context"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// lister implements the part of Reader that the tests of writers need.
type lister struct {
	mailbox.Reader
	of *mailboxtest.Memory
}

// Changes implements mailbox.Reader: every message is new.
func (l lister) Changes(_ context.Context, folder string, _ mailbox.Cursor, _ int, _ func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	changes := mailbox.Changes{Reset: true, Next: mailbox.Cursor(`{}`)}
	for _, state := range l.of.Messages(folder) {
		changes.New = append(changes.New, mailbox.Item{Location: state.Location, Flags: state.Flags})
	}
	return changes, nil
}

// Read implements mailbox.Reader.
func (l lister) Read(_ context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	for _, item := range items {
		raw, err := l.of.Content(item.Location)
		if err := each(item, raw, err); err != nil {
			return err
		}
	}
	return nil
}

func TestMemoryIsAWriter(t *testing.T) {
	t.Parallel()
	mailboxtest.TestWriter(t, func(*testing.T) mailboxtest.Account {
		memory := mailboxtest.NewMemory(mailboxtest.Identify)
		return mailboxtest.Account{
			Inbox: "INBOX", Other: "Projects", Keywords: true,
			Reader: func(*testing.T) mailbox.Reader { return lister{of: memory} },
			Writer: func(t *testing.T) mailbox.Writer {
				w, err := memory.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return w
			},
			Deliver: func(_ *testing.T, folder string, raw []byte) { memory.Deliver(folder, raw) },
			SetFlag: func(_ *testing.T, folder, messageID, flag string) {
				memory.EditID(folder, messageID, func(s *mailbox.State, _ *[]byte) { s.Flags = mailbox.Flags(append(s.Flags, flag)...) })
			},
			Move: func(_ *testing.T, from, to, messageID string) {
				memory.EditID(from, messageID, func(s *mailbox.State, _ *[]byte) { s.Folder = to })
			},
			Remove: func(_ *testing.T, folder, messageID string) { memory.EditID(folder, messageID, nil) },
		}
	})
}
