package mail_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	imapwire "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// realMailbox is a typical mailbox, with the folders INBOX, Archive, Drafts,
// Trash and Snoozed.
type realMailbox struct {
	writer func() (mailbox.Writer, error)
	reader func() (mailbox.Reader, error)
}

// seen is the state of a message that its owner can see, without its key.
type seen struct {
	Folder   string
	Flags    []string
	Received time.Time
	Identity string
}

// look returns the state of every message, also by identity.
func (m realMailbox) look(t *testing.T) (all []seen, states map[string]mailbox.State) {
	t.Helper()
	r, err := m.reader()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it only read
	states = make(map[string]mailbox.State)
	for _, folder := range []string{"INBOX", "Archive", "Drafts", "Snoozed", "Trash"} {
		changes, err := r.Changes(t.Context(), folder, nil, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Read(t.Context(), changes.New, func(item mailbox.Item, raw []byte, err error) error {
			all = append(all, seen{item.Folder, mailbox.Flags(item.Flags...), item.Received.UTC(), string(identify(raw))})
			states[string(identify(raw))] = mailbox.State{Location: item.Location, Flags: item.Flags}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all, states
}

func newMaildir(t *testing.T) realMailbox {
	dir := t.TempDir()
	for _, folder := range []string{"", ".Archive", ".Drafts", ".Trash", ".Snoozed"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return realMailbox{
		writer: func() (mailbox.Writer, error) { return maildir.NewWriter(dir, identify, maildir.Config{}) },
		reader: func() (mailbox.Reader, error) { return maildir.NewReader(dir, maildir.Config{}) },
	}
}

func overIMAP(address, user, password string) realMailbox {
	config := imap.Config{
		Address: address, Security: imap.Plain, Username: user, Networks: safehttp.Loopback(), Quota: quota.New(quota.Provider{}), Attempts: 1,
		Secret: func(context.Context) (string, error) { return password, nil },
	}
	return realMailbox{
		writer: func() (mailbox.Writer, error) { return imap.NewWriter(config, identify) },
		reader: func() (mailbox.Reader, error) { return imap.NewReader(config) },
	}
}

const memoryPassword = "hush password"

// newMemoryServer starts a server with neither CONDSTORE nor SPECIAL-USE, and
// also returns its address.
func newMemoryServer(t *testing.T) (realMailbox, string) {
	t.Helper()
	memory := imapmemserver.New()
	user := imapmemserver.NewUser("ada", memoryPassword)
	for _, folder := range []string{"INBOX", "Archive", "Drafts", "Snoozed", "Trash"} {
		if err := user.Create(folder, nil); err != nil {
			t.Fatal(err)
		}
	}
	memory.AddUser(user)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps: imapwire.CapSet{imapwire.CapIMAP4rev1: {}, imapwire.CapUIDPlus: {}, imapwire.CapMove: {}}, InsecureAuth: true,
	})
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return overIMAP(listener.Addr().String(), "ada", memoryPassword), listener.Addr().String()
}

// message stores a message in the INBOX and returns the arguments that reference
// it.
func (m realMailbox) message(t *testing.T) object {
	t.Helper()
	w, err := m.writer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // nothing was written
	raw := mailOf("1@example.com", "hush body")
	at, err := w.Append(t.Context(), "INBOX", []string{mailbox.FlagSeen}, raw)
	if err != nil {
		t.Fatal(err)
	}
	return object{"account": "work", "message": ref(mailbox.State{Location: at}, "1@example.com", raw)}
}

// TestMailboxes runs each test on every kind of mailbox, with a message in its
// INBOX. The tests on Dovecot share a server with one user each.
func TestMailboxes(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T, *fixture, realMailbox, object){
		"restored": mailboxesAreRestored, "touched": touchedStays, "forged": forgedStays, "drafts": draftsAreStored,
		"trashed": trashedMessagesRemain, "snoozed": snoozedMessagesReturn,
	}
	run := func(t *testing.T, open func(t *testing.T, user string) realMailbox) {
		t.Parallel()
		for name, test := range tests {
			m := open(t, name)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				args := m.message(t)
				f := newFixture(t, func(cfg *mail.Config) {
					cfg.Accounts = map[string]mail.Account{"work": {From: owner, Open: func(context.Context) (mailbox.Writer, error) { return m.writer() }}}
				})
				test(t, f, m, args)
			})
		}
	}
	t.Run("Maildir", func(t *testing.T) {
		run(t, func(t *testing.T, _ string) realMailbox { return newMaildir(t) })
	})
	t.Run("IMAP without CONDSTORE", func(t *testing.T) {
		run(t, func(t *testing.T, _ string) realMailbox {
			m, _ := newMemoryServer(t)
			return m
		})
	})
	t.Run("Dovecot", func(t *testing.T) {
		server := dovecottest.New(t)
		run(t, func(t *testing.T, user string) realMailbox {
			for _, folder := range []string{"Trash", "Snoozed"} {
				if err := server.Deliver(user, folder, mailOf("0@example.com", "an older one")); err != nil { // makes the folder
					t.Fatal(err)
				}
			}
			return overIMAP(server.Address, user, dovecottest.Password)
		})
	})
}

// mailboxesAreRestored changes a message several times and reverts the changes,
// newest first. Folder, flags, keywords, arrival time and content must be as
// before.
func mailboxesAreRestored(t *testing.T, f *fixture, m realMailbox, args object) {
	t.Helper()
	before, _ := m.look(t)
	type step struct {
		tool, name string
		value      any
	}
	var reversals []object
	for _, s := range []step{
		{mail.ToolLabel, "labels", object{"add": []string{"receipts"}}},
		{mail.ToolFlag, "flags", object{"add": []string{`\Flagged`}, "remove": []string{`\Seen`}}},
		{mail.ToolArchive, "labels", object{"add": []string{"bulk"}, "remove": []string{"receipts"}}},
		{mail.ToolMove, "folder", "Trash"},
	} {
		call := args2(args, "")
		call[s.name] = s.value
		if len(reversals) > 0 {
			call["message"] = reversals[len(reversals)-1]["result"]
		}
		result := f.done(s.tool, call)
		reversals = append(reversals, object{"args": f.reversal(call, result), "result": result["message"]})
	}
	changed, _ := m.look(t)
	for i := len(reversals) - 1; i >= 0; i-- {
		undo, _ := reversals[i]["args"].(object)
		f.done(mail.ToolRestore, undo)
	}
	after, _ := m.look(t)

	i := len(changed) - 1
	if got, want := fmt.Sprint(changed[i].Folder, changed[i].Flags), `Trash[\Flagged bulk]`; got != want {
		t.Errorf("after the calls the message is %s, want %s", got, want)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
}

func touchedStays(t *testing.T, f *fixture, m realMailbox, args object) {
	t.Helper()
	undo := f.reversal(args, f.done(mail.ToolArchive, args))
	w, err := m.writer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // nothing was written
	_, states := m.look(t)
	now := states[string(identify(mailOf("1@example.com", "hush body")))]
	if _, err := w.Change(t.Context(), now, mailbox.Change{Add: []string{mailbox.FlagFlagged}}); err != nil {
		t.Fatal(err)
	}
	touched, _ := m.look(t)

	f.answer(f.call(mail.ToolRestore, undo), source.KindRefused, source.CodeChanged)

	after, _ := m.look(t)
	if diff := cmp.Diff(touched, after); diff != "" {
		t.Errorf("what its owner made of it (-want +got):\n%s", diff)
	}
}

// forgedStays replaces the referenced message by another one with the same
// Message-ID and another identity.
func forgedStays(t *testing.T, f *fixture, m realMailbox, args object) {
	t.Helper()
	before, _ := m.look(t)
	real := mailOf("1@example.com", "another body")
	forged, _ := args["message"].(object)
	forged["identity"] = ref(mailbox.State{}, "1@example.com", real)["identity"]

	f.answer(f.call(mail.ToolArchive, args), source.KindRefused, source.CodeNotFound)

	after, _ := m.look(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func draftsAreStored(t *testing.T, f *fixture, m realMailbox, _ object) {
	t.Helper()
	stored := f.answer(f.attempt(1, "key", mail.ToolDraft, draftArgs()), source.KindDone, "")
	again := f.answer(f.attempt(2, "key", mail.ToolDraft, draftArgs()), source.KindDone, "")
	all, _ := m.look(t)
	f.done(mail.ToolDraftDelete, object{"account": "work", "message": stored["message"], "after": stored["after"]})
	left, _ := m.look(t)

	count := func(all []seen, folder string) (n int) {
		for _, s := range all {
			if s.Folder == folder {
				n++
			}
		}
		return n
	}
	if diff := cmp.Diff(stored, again); diff != "" {
		t.Errorf("the second attempt answers (-first +second):\n%s", diff)
	}
	if count(all, "Drafts") != 1 || count(left, "Drafts") != 0 || count(left, "Trash") != count(all, "Trash")+1 {
		t.Errorf("stored %v, then deleted %v; want one draft, and then in the trash", all, left)
	}
	if bytes.Contains(fmt.Append(nil, stored), []byte("Hello")) {
		t.Errorf("the answer has content: %v", stored)
	}
}

// TestMessagesOfARenumberedOrRenamedFolder reverts an archive after the folder got
// another UIDVALIDITY, in which the message is found by its Message-ID, and after
// its owner renamed the folder, which is a change of theirs.
func TestMessagesOfARenumberedOrRenamedFolder(t *testing.T) {
	t.Parallel()
	server := dovecottest.New(t)
	for name, test := range map[string]struct {
		change func(t *testing.T, user string)
		kind   source.Kind
		code   string
	}{
		"renumbered": {func(t *testing.T, user string) {
			if err := server.ChangeValidity(user, "Archive"); err != nil {
				t.Fatal(err)
			}
		}, source.KindDone, ""},
		"renamed": {func(t *testing.T, user string) {
			c, err := imapclient.DialInsecure(server.Address, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // it has renamed
			if err := errors.Join(c.Login(user, dovecottest.Password).Wait(), c.Rename("Archive", "Old", nil).Wait()); err != nil {
				t.Fatal(err)
			}
		}, source.KindRefused, source.CodeChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := overIMAP(server.Address, name, dovecottest.Password)
			config := func(cfg *mail.Config) {
				cfg.Accounts = map[string]mail.Account{"work": {Open: func(context.Context) (mailbox.Writer, error) { return m.writer() }}}
			}
			args := m.message(t)
			f := newFixture(t, config)
			undo := f.reversal(args, f.done(mail.ToolArchive, args))
			if err := f.source.Close(); err != nil {
				t.Fatal(err)
			}
			test.change(t, name)

			f = newFixture(t, config)
			f.answer(f.call(mail.ToolRestore, undo), test.kind, test.code)
		})
	}
}
