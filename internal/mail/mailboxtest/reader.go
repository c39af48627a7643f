package mailboxtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// TestReader tests a Reader. open returns a new account.
func TestReader(t *testing.T, open func(*testing.T) Account) {
	for name, test := range map[string]func(*testing.T, Account){
		"methods":        func(t *testing.T, a Account) { CheckReaderMethods(t, a.Reader(t)) },
		"folders":        testFolders,
		"pages":          testPages,
		"resume":         testResume,
		"end":            testEnd,
		"older":          testOlder,
		"read":           testRead,
		"read errors":    testReadErrors,
		"flagged":        testFlagged,
		"gone":           testGone,
		"moved":          testMoved,
		"void":           testVoid,
		"wait":           testWait,
		"cancelled":      testCancelled,
		"invalid inputs": testInvalid,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func testFolders(t *testing.T, a Account) {
	folders, err := a.Reader(t).Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]mailbox.Use{}
	for _, folder := range folders {
		found[folder.Name] = folder.Use
	}
	if found[a.Inbox] != mailbox.UseInbox && a.Other != "" {
		t.Errorf("folders %v have no %s for the inbox", folders, a.Inbox)
	}
	if _, ok := found[a.Other]; a.Other != "" && !ok {
		t.Errorf("folders %v have no %s", folders, a.Other)
	}
}

func testPages(t *testing.T, a Account) {
	r := a.Reader(t)
	f := follow(t, r, a.Inbox)
	wantNumbers(t, "an empty folder", f.newNumbers(a))
	a.deliver(t, a.Inbox, 1, 2, 3, 4, 5, 6, 7)
	wantNumbers(t, "seven in pages of three", f.newNumbers(a), 1, 2, 3, 4, 5, 6, 7)
	if got := f.next(); len(got.New)+len(got.Gone) > 0 || got.Reset {
		t.Errorf("nothing changed: %+v", got)
	}
	whole := follow(t, r, a.Inbox)
	wantNumbers(t, "from the beginning", whole.newNumbers(a), 1, 2, 3, 4, 5, 6, 7)
}

func testResume(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2, 3, 4, 5)
	f := follow(t, a.Reader(t), a.Inbox)
	got, err := f.reader.Changes(t.Context(), a.Inbox, nil, 2, f.locations)
	if err != nil || !got.More || len(got.New) != 2 {
		t.Fatalf("first page of two: %+v, %v", got, err)
	}
	for _, item := range got.New {
		f.known[item.Location] = item
	}
	f.cursor, f.reader = got.Next, a.Reader(t)
	wantNumbers(t, "another reader, in the middle", f.newNumbers(a), 3, 4, 5)
	f.reader = a.Reader(t)
	if got := f.next(); len(got.New)+len(got.Gone) > 0 || got.Reset {
		t.Errorf("another reader, nothing changed: %+v", got)
	}
	a.deliver(t, a.Inbox, 6)
	f.reader = a.Reader(t)
	wantNumbers(t, "another reader, one came", f.newNumbers(a), 6)
}

func testEnd(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2)
	r := a.Reader(t)
	end, err := r.End(t.Context(), a.Inbox)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, r, a.Inbox)
	f.cursor = end
	a.deliver(t, a.Inbox, 3)
	// A message that arrived at the moment of the end may be repeated.
	got := f.newNumbers(a)
	if len(got) == 0 || got[len(got)-1] != 3 || slices.Contains(got, 1) && !slices.Contains(got, 2) {
		t.Errorf("after the end came %v, want 3", got)
	}
	wantNumbers(t, "nothing more", f.newNumbers(a))
}

func testOlder(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2, 3, 4, 5, 6, 7)
	r := a.Reader(t)
	var got []int
	var before mailbox.Cursor
	for range 10 {
		items, next, err := r.Older(t.Context(), a.Inbox, before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		got = append(got, a.numbers(t, r, items)...)
		before = bytes.Clone(next)
		if len(got) == 3 {
			a.deliver(t, a.Inbox, 8) // arrives later and is not older
			r = a.Reader(t)
		}
	}
	wantNumbers(t, "older", got, 7, 6, 5, 4, 3, 2, 1)
}

func testRead(t *testing.T, a Account) {
	want := Message(1, "hello")
	a.Deliver(t, a.Inbox, want)
	r := a.Reader(t)
	f := follow(t, r, a.Inbox)
	item := f.next().New[0]
	for range 2 {
		err := r.Read(t.Context(), []mailbox.Item{item}, func(got mailbox.Item, raw []byte, err error) error {
			if got.Built != a.Built {
				t.Errorf("Built is %v, want %v", got.Built, a.Built)
			}
			if a.Built {
				if !hasID(raw, 1) || !bytes.Contains(raw, []byte("From the top: hello")) {
					t.Errorf("read %q, want the fields and the text of %q", raw, want)
				}
				return err
			}
			if !bytes.Equal(Identify(raw), Identify(want)) {
				t.Errorf("read %q, want %q", raw, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if item.Received.IsZero() || item.Size < int64(len(want))/2 {
		t.Errorf("received at %v, %d bytes", item.Received, item.Size)
	}
	again := follow(t, a.Reader(t), a.Inbox)
	if got := again.next().New[0]; mailbox.HasFlag(got.Flags, mailbox.FlagSeen) {
		t.Errorf("reading marked the message as read: %v", got.Flags)
	}
}

func testReadErrors(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	a.Deliver(t, a.Inbox, append(Message(2, "large"), bytes.Repeat([]byte("x\r\n"), MaxSize)...))
	a.deliver(t, a.Inbox, 3)
	r := a.Reader(t)
	items := follow(t, r, a.Inbox).next().New
	if a.Remove != nil {
		a.Remove(t, a.Inbox, ID(3))
	}
	var read, large, gone int
	err := r.Read(t.Context(), items, func(item mailbox.Item, raw []byte, err error) error {
		switch {
		case errors.Is(err, mailbox.ErrTooLarge) && raw == nil:
			large++
		case errors.Is(err, mailbox.ErrGone):
			gone++
		case err != nil:
			t.Errorf("read: %v", err)
		case hasID(raw, 1), hasID(raw, 3):
			read++
		}
		return nil
	})
	if a.Remove == nil {
		gone, read = gone+1, read-1
	}
	if err != nil || read != 1 || large != 1 || gone != 1 {
		t.Errorf("%d read, %d too large, %d gone, %v; want one each", read, large, gone, err)
	}
	stop := errors.New("stop")
	calls := 0
	err = r.Read(t.Context(), items, func(mailbox.Item, []byte, error) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("after each returned an error: %v, %d calls", err, calls)
	}
	// The reader still works after a stopped Read.
	if _, err := r.Folders(t.Context()); err != nil {
		t.Error(err)
	}
}

func testFlagged(t *testing.T, a Account) {
	if a.SetFlag == nil {
		t.Log("flags of this kind of account do not change by themselves")
		return
	}
	flags := []string{mailbox.FlagFlagged}
	if a.Keywords {
		flags = append(flags, "Countersign_receipts")
	}
	a.deliver(t, a.Inbox, 1, 2, 3, 4)
	f := follow(t, a.Reader(t), a.Inbox)
	f.next()
	for _, flag := range flags {
		a.SetFlag(t, a.Inbox, ID(2), flag)
		if got := f.next(); len(got.New)+len(got.Gone) > 0 || got.Reset {
			t.Errorf("after %s was set: %+v", flag, got)
		}
		if got := f.item(a, 2); !mailbox.HasFlag(got.Flags, flag) {
			t.Errorf("flags are %v, want %s", got.Flags, flag)
		}
		f.reader = a.Reader(t)
	}
	if got := f.item(a, 1); mailbox.HasFlag(got.Flags, mailbox.FlagFlagged) {
		t.Errorf("flags of another message are %v", got.Flags)
	}
}

func testGone(t *testing.T, a Account) {
	if a.Remove == nil {
		t.Log("messages of this kind of account are not removed")
		return
	}
	a.deliver(t, a.Inbox, 1, 2, 3, 4)
	f := follow(t, a.Reader(t), a.Inbox)
	f.next()
	for _, n := range []int{2, 4} {
		at := f.item(a, n).Location
		a.Remove(t, a.Inbox, ID(n))
		got := f.next()
		if !got.Reset && (len(got.New) > 0 || !slices.Equal(got.Gone, []mailbox.Location{at})) {
			t.Errorf("%d went: %+v, want only %v gone", n, got, at)
		}
		f.reader = a.Reader(t)
	}
	if len(f.known) != 2 {
		t.Errorf("known are %v, want two messages", f.known)
	}
}

func testMoved(t *testing.T, a Account) {
	if a.Move == nil {
		t.Log("messages of this kind of account are not moved")
		return
	}
	a.deliver(t, a.Inbox, 1, 2, 3)
	r := a.Reader(t)
	inbox, other := follow(t, r, a.Inbox), follow(t, r, a.Other)
	inbox.next()
	other.next()
	at := inbox.item(a, 2).Location
	a.Move(t, a.Inbox, a.Other, ID(2))
	if got := inbox.next(); len(got.New) > 0 || !slices.Equal(got.Gone, []mailbox.Location{at}) {
		t.Errorf("moved away: %+v, want %v gone", got, at)
	}
	wantNumbers(t, "moved there", other.newNumbers(a), 2)
	a.deliver(t, a.Inbox, 4)
	wantNumbers(t, "delivered after the move", inbox.newNumbers(a), 4)
}

func testVoid(t *testing.T, a Account) {
	if a.Void == nil {
		t.Log("locations of this kind of account do not become void")
		return
	}
	a.deliver(t, a.Inbox, 1, 2, 3, 4)
	f := follow(t, a.Reader(t), a.Inbox)
	f.next()
	a.Void(t, a.Inbox)
	got := f.next()
	numbers := a.numbers(t, f.reader, got.New)
	slices.Sort(numbers)
	if !got.Reset {
		t.Error("the locations are void, and the reader does not say so")
	}
	wantNumbers(t, "after a reset", numbers, 1, 2, 3, 4)
	if got := f.next(); got.Reset || len(got.New) > 0 {
		t.Errorf("after the reset: %+v", got)
	}
}

func testWait(t *testing.T, a Account) {
	r := a.Reader(t)
	f := follow(t, r, a.Inbox)
	folders := []string{a.Inbox}
	if a.Other != "" {
		folders = append(folders, a.Other)
	}
	for n := range 3 {
		a.deliver(t, a.Inbox, n)
		var got []int
		for len(got) == 0 {
			if a.Polls {
				got = f.newNumbers(a)
				continue
			}
			if err := r.Wait(bounded(t), folders); err != nil {
				t.Fatalf("wait for message %d: %v", n, err)
			}
			got = f.newNumbers(a)
		}
		wantNumbers(t, "after Wait", got, n)
	}
}

func testCancelled(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	r := a.Reader(t)
	f := follow(t, r, a.Inbox)
	items := f.next().New
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"Folders": func() error { _, err := r.Folders(ctx); return err },
		"End":     func() error { _, err := r.End(ctx, a.Inbox); return err },
		"Changes": func() error { _, err := r.Changes(ctx, a.Inbox, f.cursor, 1, f.locations); return err },
		"Older":   func() error { _, _, err := r.Older(ctx, a.Inbox, nil, 1); return err },
		"Read": func() error {
			return r.Read(ctx, items, func(mailbox.Item, []byte, error) error { return nil })
		},
		"Wait": func() error { return r.Wait(ctx, []string{a.Inbox}) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after cancellation: %v", name, err)
		}
	}
	a.deliver(t, a.Inbox, 2)
	wantNumbers(t, "after cancellation", f.newNumbers(a), 2)
}

func testInvalid(t *testing.T, a Account) {
	r := a.Reader(t)
	known := func(context.Context) ([]mailbox.Location, error) { return nil, nil }
	for _, folder := range []string{"absent", "", "..", "../" + a.Inbox, "/", "a/../../b", "new"} {
		if _, err := r.Changes(t.Context(), folder, nil, 1, known); !errors.Is(err, mailbox.ErrNoFolder) {
			t.Errorf("Changes of folder %q: %v, want ErrNoFolder", folder, err)
		}
	}
	for _, cursor := range []string{`{`, `"x"`, `[1]`} {
		if _, err := r.Changes(t.Context(), a.Inbox, mailbox.Cursor(cursor), 1, known); !errors.Is(err, mailbox.ErrInvalid) {
			t.Errorf("Changes since %s: %v, want ErrInvalid", cursor, err)
		}
		if _, _, err := r.Older(t.Context(), a.Inbox, mailbox.Cursor(cursor), 1); !errors.Is(err, mailbox.ErrInvalid) {
			t.Errorf("Older than %s: %v, want ErrInvalid", cursor, err)
		}
	}
	for _, key := range []string{"", "x", "../new/x", "1:0", "0:1", "4294967296:1", "-1:1"} {
		item := mailbox.Item{Location: mailbox.Location{Folder: a.Inbox, Key: key}}
		err := r.Read(t.Context(), []mailbox.Item{item}, func(_ mailbox.Item, _ []byte, err error) error { return err })
		if !errors.Is(err, mailbox.ErrGone) {
			t.Errorf("Read of key %q: %v, want ErrGone", key, err)
		}
	}
}
