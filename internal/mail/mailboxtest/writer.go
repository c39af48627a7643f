package mailboxtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// TestWriter tests a Writer. open returns a new account.
func TestWriter(t *testing.T, open func(*testing.T) Account) {
	for name, test := range map[string]func(*testing.T, Account){
		"change":       testChange,
		"restore":      testRestore,
		"changed":      testChanged,
		"find":         testFind,
		"forged":       testForged,
		"append":       testAppend,
		"impossible":   testImpossible,
		"moved twice":  testMovedTwice,
		"both folders": testWriterFolders,
		"content":      testContent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// label returns a keyword, or a flag if the account has no keywords.
func (a Account) label() string {
	if a.Keywords {
		return "Countersign_receipts"
	}
	return mailbox.FlagAnswered
}

// find returns the state of the message with a number.
func (a Account) find(t *testing.T, w mailbox.Writer, at mailbox.Location, n int) mailbox.State {
	t.Helper()
	state, err := w.Find(t.Context(), at, ID(n), Identify(Message(n, "hello")))
	if err != nil {
		t.Fatalf("find message %d: %v", n, err)
	}
	return state
}

func testChange(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2)
	r, w := a.Reader(t), a.Writer(t)
	f := follow(t, r, a.Inbox)
	f.next()
	before := f.item(a, 1)
	state := a.find(t, w, before.Location, 1)
	if !state.Equal(mailbox.State{Location: before.Location, Flags: before.Flags}) || state.Key != before.Key {
		t.Errorf("the writer finds %+v, the reader %+v", state, before)
	}
	for _, change := range []mailbox.Change{
		{Add: []string{mailbox.FlagSeen, a.label()}},
		{Add: []string{mailbox.FlagFlagged}, Remove: []string{mailbox.FlagSeen}},
		{MoveTo: a.Other},
		{MoveTo: a.Inbox, Remove: []string{a.label()}, Add: []string{mailbox.FlagSeen}},
		{MoveTo: a.Inbox},
		{},
	} {
		want := mailbox.State{Location: state.Location, Flags: change.Apply(state.Flags)}
		if change.MoveTo != "" {
			want.Folder = change.MoveTo
		}
		after, err := w.Change(t.Context(), state, change)
		if err != nil {
			t.Fatalf("%+v: %v", change, err)
		}
		if !after.Equal(want) {
			t.Errorf("%+v led to %+v, want %+v", change, after, want)
		}
		if found := a.find(t, w, after.Location, 1); !found.Equal(after) || found.Key != after.Key {
			t.Errorf("after %+v found %+v, want %+v", change, found, after)
		}
		state = after
	}
	// Another reader sees the same flags, and the content is unchanged.
	items := follow(t, a.Reader(t), a.Inbox)
	items.next()
	got := items.item(a, 1)
	if !(mailbox.State{Location: got.Location, Flags: got.Flags}).Equal(state) || !got.Received.Equal(before.Received) || got.Size != before.Size {
		t.Errorf("the reader sees %+v after %+v, want state %+v", got, before, state)
	}
	if len(items.known) != 2 {
		t.Errorf("%d messages, want 2", len(items.known))
	}
}

// testContent reads and locates a message, and neither marks it as read.
func testContent(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2)
	w := a.Writer(t)
	items := follow(t, a.Reader(t), a.Inbox)
	items.next()
	at := items.item(a, 1).Location
	located, err := w.Locate(t.Context(), a.Inbox, ID(1))
	if err != nil || located != at {
		t.Errorf("Locate() = %v, %v, want %v", located, err, at)
	}
	raw, err := w.Content(t.Context(), at)
	if err != nil || !bytes.Equal(Identify(raw), Identify(Message(1, "hello"))) {
		t.Errorf("Content() = %q, %v", raw, err)
	}
	if state := a.find(t, w, at, 1); mailbox.HasFlag(state.Flags, mailbox.FlagSeen) {
		t.Error("the message is marked as read")
	}
	gone := at
	gone.Key += "7"
	_, noMessage := w.Content(t.Context(), gone)
	_, noID := w.Locate(t.Context(), a.Inbox, "other@example.com")
	_, empty := w.Locate(t.Context(), a.Inbox, "")
	_, noFolder := w.Locate(t.Context(), "Nowhere", ID(1))
	if !errors.Is(noMessage, mailbox.ErrGone) || !errors.Is(noID, mailbox.ErrGone) || !errors.Is(empty, mailbox.ErrGone) || !errors.Is(noFolder, mailbox.ErrNoFolder) {
		t.Errorf("Content and Locate = %v, %v, %v, %v", noMessage, noID, empty, noFolder)
	}
}

// testRestore checks that the previous state can be restored from the writer's
// answer.
func testRestore(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	a.SetFlag(t, a.Inbox, ID(1), mailbox.FlagFlagged)
	r, w := a.Reader(t), a.Writer(t)
	f := follow(t, r, a.Inbox)
	item := f.next().New[0]
	before := a.find(t, w, item.Location, 1)
	after, err := w.Change(t.Context(), before, mailbox.Change{
		MoveTo: a.Other, Add: []string{mailbox.FlagSeen, a.label()}, Remove: []string{mailbox.FlagFlagged},
	})
	if err != nil {
		t.Fatal(err)
	}

	restored, err := a.Writer(t).Change(t.Context(), after, after.ChangeTo(before))

	if err != nil || !restored.Equal(before) {
		t.Errorf("restored %+v, %v; want %+v", restored, err, before)
	}
	again := follow(t, a.Reader(t), a.Inbox)
	again.next()
	if got := again.item(a, 1); !got.Received.Equal(item.Received) || len(again.known) != 1 {
		t.Errorf("after the restore %+v, want what was received at %s", again.known, item.Received)
	}
}

// testChanged checks that a change fails if someone else has changed the
// message.
func testChanged(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	r, w := a.Reader(t), a.Writer(t)
	item := follow(t, r, a.Inbox).next().New[0]
	before := a.find(t, w, item.Location, 1)
	a.SetFlag(t, a.Inbox, ID(1), mailbox.FlagFlagged)
	for _, change := range []mailbox.Change{{Add: []string{mailbox.FlagSeen}}, {MoveTo: a.Other}} {
		if got, err := w.Change(t.Context(), before, change); !errors.Is(err, mailbox.ErrChanged) {
			t.Errorf("%+v of a message with other flags: %+v, %v; want ErrChanged", change, got, err)
		}
	}
	now := a.find(t, w, item.Location, 1)
	if want := []string{mailbox.FlagFlagged}; !now.Equal(mailbox.State{Location: before.Location, Flags: want}) {
		t.Errorf("state is %+v, want flags %v in %s", now, want, a.Inbox)
	}
	a.Move(t, a.Inbox, a.Other, ID(1))
	if got, err := w.Change(t.Context(), now, mailbox.Change{Add: []string{mailbox.FlagSeen}}); !errors.Is(err, mailbox.ErrGone) {
		t.Errorf("change of a message that was moved: %+v, %v; want ErrGone", got, err)
	}
}

func testFind(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2)
	w := a.Writer(t)
	f := follow(t, a.Reader(t), a.Inbox)
	f.next()
	at := f.item(a, 1).Location
	a.Move(t, a.Inbox, a.Other, ID(1))
	got := a.find(t, w, at, 1)
	if got.Folder != a.Other {
		t.Errorf("found %+v, want it in %s", got, a.Other)
	}
	for name, call := range map[string]func() (mailbox.State, error){
		"without a Message-ID": func() (mailbox.State, error) {
			return w.Find(t.Context(), at, "", Identify(Message(1, "hello")))
		},
		"with an unknown Message-ID": func() (mailbox.State, error) {
			return w.Find(t.Context(), at, ID(9), Identify(Message(1, "hello")))
		},
		"in a folder that is not there": func() (mailbox.State, error) {
			return w.Find(t.Context(), mailbox.Location{Folder: "absent", Key: "1:1"}, ID(9), Identify(Message(9, "hello")))
		},
	} {
		if state, err := call(); !errors.Is(err, mailbox.ErrGone) {
			t.Errorf("%s: %+v, %v; want ErrGone", name, state, err)
		}
	}
	a.Remove(t, a.Other, ID(1))
	if state, err := w.Find(t.Context(), at, ID(1), Identify(Message(1, "hello"))); !errors.Is(err, mailbox.ErrGone) {
		t.Errorf("after removal: %+v, %v; want ErrGone", state, err)
	}
}

// testForged checks that a message with the Message-ID of another is not taken
// for it, in any folder.
func testForged(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	w := a.Writer(t)
	f := follow(t, a.Reader(t), a.Inbox)
	at := f.next().New[0].Location
	a.Move(t, a.Inbox, a.Other, ID(1))
	a.Deliver(t, a.Inbox, Message(1, "forged"))
	if got := a.find(t, w, at, 1); got.Folder != a.Other {
		t.Errorf("found %+v, which is the forged message", got)
	}
	f.next()
	forged := f.item(a, 1).Location
	if got := a.find(t, w, forged, 1); got.Folder != a.Other {
		t.Errorf("found %+v at the location of the forged message", got)
	}
	a.Remove(t, a.Other, ID(1))
	if state, err := w.Find(t.Context(), at, ID(1), Identify(Message(1, "hello"))); !errors.Is(err, mailbox.ErrGone) {
		t.Errorf("only the forged message is left: %+v, %v; want ErrGone", state, err)
	}
}

func testAppend(t *testing.T, a Account) {
	w := a.Writer(t)
	want := Message(1, "a draft")
	at, err := w.Append(t.Context(), a.Other, []string{mailbox.FlagDraft, mailbox.FlagSeen}, want)
	if err != nil {
		t.Fatal(err)
	}
	state, err := w.Find(t.Context(), at, "", Identify(want))
	if err != nil || !state.Equal(mailbox.State{Location: at, Flags: []string{mailbox.FlagDraft, mailbox.FlagSeen}}) {
		t.Errorf("appended %+v, found %+v, %v", at, state, err)
	}
	again, err := a.Writer(t).Append(t.Context(), a.Other, nil, Message(1, "the same draft again"))
	if !errors.Is(err, mailbox.ErrExists) || again != at {
		t.Errorf("appended again: %+v, %v; want ErrExists and %+v", again, err, at)
	}
	// Without a Message-ID there is no duplicate check.
	bare := []byte("Subject: bare\r\n\r\ntext\r\n")
	for range 2 {
		if _, err := w.Append(t.Context(), a.Other, nil, bare); err != nil {
			t.Errorf("append without a Message-ID: %v", err)
		}
	}
	f := follow(t, a.Reader(t), a.Other)
	if got := len(f.next().New); got != 3 {
		t.Errorf("%d messages, want 3", got)
	}
	err = f.reader.Read(t.Context(), []mailbox.Item{f.item(a, 1)}, func(_ mailbox.Item, raw []byte, err error) error {
		if !bytes.Equal(Identify(raw), Identify(want)) {
			t.Errorf("read %q, want %q", raw, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// testImpossible checks that unsupported changes fail and change nothing.
func testImpossible(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1)
	w := a.Writer(t)
	item := follow(t, a.Reader(t), a.Inbox).next().New[0]
	before := a.find(t, w, item.Location, 1)
	for want, changes := range map[error][]mailbox.Change{
		mailbox.ErrNoFolder: {
			{MoveTo: "absent", Add: []string{mailbox.FlagSeen}}, {MoveTo: ".."}, {MoveTo: "../" + a.Other},
		},
		mailbox.ErrInvalid: {
			{Add: []string{"two words"}}, {Add: []string{`\Own`}}, {Remove: []string{"a)\r\nx"}},
			{Add: []string{"a"}, Remove: []string{"a"}},
		},
	} {
		for _, change := range changes {
			if got, err := w.Change(t.Context(), before, change); !errors.Is(err, want) {
				t.Errorf("%+v: %+v, %v; want %v", change, got, err, want)
			}
		}
	}
	for _, key := range []string{"", "x", "0:1", "1:0"} {
		state := mailbox.State{Location: mailbox.Location{Folder: a.Inbox, Key: key}}
		if _, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{mailbox.FlagSeen}}); !errors.Is(err, mailbox.ErrGone) {
			t.Errorf("change of key %q: %v, want ErrGone", key, err)
		}
	}
	if _, err := w.Append(t.Context(), "absent", nil, Message(5, "hello")); !errors.Is(err, mailbox.ErrNoFolder) {
		t.Errorf("append to a folder that is not there: %v, want ErrNoFolder", err)
	}
	if now := a.find(t, w, item.Location, 1); !now.Equal(before) || now.Key != before.Key {
		t.Errorf("state is %+v, want %+v", now, before)
	}
}

// testMovedTwice checks that a message can be moved and moved back, each time
// to a valid location.
func testMovedTwice(t *testing.T, a Account) {
	a.deliver(t, a.Inbox, 1, 2)
	w := a.Writer(t)
	f := follow(t, a.Reader(t), a.Inbox)
	f.next()
	first := a.find(t, w, f.item(a, 1).Location, 1)
	state := first
	for _, folder := range []string{a.Other, a.Inbox, a.Other, a.Inbox} {
		next, err := w.Change(t.Context(), state, mailbox.Change{MoveTo: folder})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{mailbox.FlagSeen}}); !errors.Is(err, mailbox.ErrGone) {
			t.Errorf("the old location still works: %v", err)
		}
		state = next
	}
	if state.Key == first.Key {
		t.Errorf("the message came back under its old key %q", state.Key)
	}
	f.next()
	if len(f.known) != 2 {
		t.Errorf("known are %v, want two messages", f.known)
	}
}

func testWriterFolders(t *testing.T, a Account) {
	folders, err := a.Writer(t).Folders(t.Context())
	found := 0
	for _, folder := range folders {
		if folder.Name == a.Inbox || folder.Name == a.Other {
			found++
		}
	}
	if err != nil || found != 2 {
		t.Errorf("folders %v, %v; want %s and %s among them", folders, err, a.Inbox, a.Other)
	}
}
