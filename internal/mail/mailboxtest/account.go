// Package mailboxtest holds the contract tests that every mailbox.Reader and
// every mailbox.Writer passes.
package mailboxtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Account is an account with an empty INBOX and an empty second folder, and the
// operations of another program on it. A nil function means that the kind of
// account does not support the operation. Messages are named by their
// Message-ID.
type Account struct {
	// Inbox and Other are folders. If Other is empty, the account has one
	// folder.
	Inbox, Other string
	// Reader opens a new Reader with a limit of MaxSize bytes a message, which
	// closes with the test. Its polling interval is a minute or more, so that a
	// Wait that returns sooner was notified.
	Reader func(*testing.T) mailbox.Reader
	// Writer opens a new Writer that identifies by Identify.
	Writer func(*testing.T) mailbox.Writer

	Deliver func(t *testing.T, folder string, raw []byte)
	SetFlag func(t *testing.T, folder, messageID, flag string)
	Move    func(t *testing.T, from, to, messageID string)
	Remove  func(t *testing.T, folder, messageID string)
	// Void makes all locations of a folder void.
	Void func(t *testing.T, folder string)
	// Polls reports whether the Reader gets no notifications.
	Polls bool
	// Built reports whether the account does not return originals.
	Built bool
	// Keywords reports whether the account can store keywords.
	Keywords bool
}

// MaxSize is the size limit of a message in these tests.
const MaxSize = 8 << 10

// ID returns the Message-ID of the message with a number.
func ID(n int) string { return fmt.Sprintf("message-%d@mailbox.test", n) }

// Message returns the message with a number. A copy with another text has the
// same Message-ID and another identity.
func Message(n int, text string) []byte {
	return fmt.Appendf(nil, "From: sender@mailbox.test\r\nMessage-ID: <%s>\r\nSubject: number %d\r\n\r\n"+
		"From the top: %s\r\n>From a quote.\r\n", ID(n), n, text)
}

// Identify returns a digest over a message that ignores the kind of line ends.
func Identify(raw []byte) []byte {
	sum := sha256.Sum256(bytes.TrimRight(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), "\n"))
	return sum[:]
}

// numbers returns the numbers of messages.
func (a Account) numbers(t *testing.T, r mailbox.Reader, items []mailbox.Item) []int {
	t.Helper()
	byKey := map[mailbox.Location]int{}
	err := r.Read(t.Context(), items, func(item mailbox.Item, raw []byte, err error) error {
		n := -1
		fmt.Sscanf(mailbox.MessageID(raw), "message-%d@", &n)
		byKey[item.Location] = n
		return err
	})
	if err != nil {
		t.Fatalf("read %d messages: %v", len(items), err)
	}
	var numbers []int
	for _, item := range items {
		numbers = append(numbers, byKey[item.Location])
	}
	return numbers
}

// follower reads a folder as a caller of a Reader does.
type follower struct {
	t      *testing.T
	reader mailbox.Reader
	folder string
	cursor mailbox.Cursor
	known  map[mailbox.Location]mailbox.Item
	limit  int
}

func follow(t *testing.T, r mailbox.Reader, folder string) *follower {
	return &follower{t: t, reader: r, folder: folder, known: map[mailbox.Location]mailbox.Item{}, limit: 3}
}

func (f *follower) locations(context.Context) ([]mailbox.Location, error) {
	var all []mailbox.Location
	for at := range f.known {
		all = append(all, at)
	}
	return all, nil
}

// next reads all pages until there is no more, and returns them as one.
func (f *follower) next() mailbox.Changes {
	f.t.Helper()
	var all mailbox.Changes
	for {
		got, err := f.reader.Changes(f.t.Context(), f.folder, f.cursor, f.limit, f.locations)
		if err != nil {
			f.t.Fatalf("changes of %s: %v", f.folder, err)
		}
		if len(got.New) > f.limit {
			f.t.Fatalf("%d new messages, more than the limit of %d", len(got.New), f.limit)
		}
		if got.Reset {
			all.Reset = true
			clear(f.known)
		}
		for _, at := range got.Gone {
			delete(f.known, at)
		}
		for _, item := range append(slices.Clone(got.New), got.Flagged...) {
			f.known[item.Location] = item
		}
		all.New = append(all.New, got.New...)
		all.Flagged = append(all.Flagged, got.Flagged...)
		all.Gone = append(all.Gone, got.Gone...)
		// A cursor is stored as text and read back as another value.
		f.cursor = mailbox.Cursor(bytes.Clone(got.Next))
		if !got.More {
			return all
		}
	}
}

// newNumbers reads the next changes and returns the numbers of the new
// messages.
func (f *follower) newNumbers(a Account) []int {
	f.t.Helper()
	return a.numbers(f.t, f.reader, f.next().New)
}

// item returns the known item of the message with a number.
func (f *follower) item(a Account, n int) mailbox.Item {
	f.t.Helper()
	for _, item := range f.known {
		if a.numbers(f.t, f.reader, []mailbox.Item{item})[0] == n {
			return item
		}
	}
	f.t.Fatalf("message %d is not known in %s", n, f.folder)
	return mailbox.Item{}
}

func (a Account) deliver(t *testing.T, folder string, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		a.Deliver(t, folder, Message(n, "hello"))
	}
}

// wantNumbers compares numbers in order.
func wantNumbers(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: messages %v, want %v", what, got, want)
	}
}

// bounded returns a context with ample time for a call.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// CheckReaderMethods fails if a Reader has an exported method or field other
// than the methods of mailbox.Reader, none of which changes a mailbox.
func CheckReaderMethods(t *testing.T, reader mailbox.Reader) {
	t.Helper()
	contract := reflect.TypeFor[mailbox.Reader]()
	for _, writing := range []string{"Find", "Change", "Append", "Store", "Move", "Copy", "Expunge", "Delete", "Create"} {
		if _, ok := contract.MethodByName(writing); ok {
			t.Errorf("mailbox.Reader has the method %s", writing)
		}
	}
	got := reflect.TypeOf(reader)
	for method := range got.Methods() {
		if _, ok := contract.MethodByName(method.Name); !ok {
			t.Errorf("%s has the method %s, which is not of mailbox.Reader", got, method.Name)
		}
	}
	if _, ok := reader.(mailbox.Writer); ok {
		t.Errorf("%s is a mailbox.Writer", got)
	}
	if got.Kind() == reflect.Pointer && got.Elem().Kind() == reflect.Struct {
		for i := range got.Elem().NumField() {
			if field := got.Elem().Field(i); field.IsExported() {
				t.Errorf("%s has the field %s, by which it can be changed", got, field.Name)
			}
		}
	}
}

func hasID(raw []byte, n int) bool { return strings.Contains(string(raw), ID(n)) }
