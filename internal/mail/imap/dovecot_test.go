package imap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// TestReaderSendsOnlyReadingCommands checks the commands of a Reader on the
// wire, since EXAMINE alone does not protect a mailbox.
func TestReaderSendsOnlyReadingCommands(t *testing.T) {
	t.Parallel()

	s, _ := newDovecot(t)
	w := record(t, s.address)
	through := &server{address: w.address, password: s.password}
	t.Run("reader", func(t *testing.T) {
		mailboxtest.TestReader(t, func(t *testing.T) mailboxtest.Account {
			user := s.newUser(t)
			a := s.accountOf(user)
			a.Reader = func(t *testing.T) mailbox.Reader { return through.reader(t, through.config(user)) }
			a.Void = nil
			return a
		})
	})

	t.Cleanup(func() {
		allowed := []string{"CAPABILITY", "AUTHENTICATE", "LOGIN", "LIST", "EXAMINE", "UID FETCH", "UID SEARCH", "IDLE", "DONE", "NOOP"}
		commands := w.commands()
		for _, command := range commands {
			if !slices.Contains(allowed, command) {
				t.Errorf("a Reader sent %s", command)
			}
		}
		if !slices.Contains(commands, "EXAMINE") || !slices.Contains(commands, "UID FETCH") || !slices.Contains(commands, "IDLE") {
			t.Errorf("the commands %q are not those of a Reader", commands)
		}
		if text := w.text(); strings.Contains(strings.ReplaceAll(text, "BODY.PEEK[", ""), "BODY[") {
			t.Error("a Reader fetched a body without PEEK")
		}
	})
}

// TestFlagsOfAnotherClient checks that every change of another client is
// reported exactly once, however close it is to a read.
func TestFlagsOfAnotherClient(t *testing.T) {
	t.Parallel()

	s, _ := newDovecot(t)
	const messages = 10
	for n := range messages {
		s.other(t, "alice").deliver("INBOX", mailboxtest.Message(n, "hello"))
	}
	r := s.reader(t, s.config("alice"))
	changes, err := r.Changes(t.Context(), "INBOX", nil, 100, nil)
	if err != nil || len(changes.New) != messages {
		t.Fatalf("%d new messages, %v", len(changes.New), err)
	}
	o := s.other(t, "alice")
	if _, err := o.client.Select("INBOX", nil).Wait(); err != nil {
		t.Fatal(err)
	}
	since := changes.Next
	for round := range 40 {
		item := changes.New[round%messages]
		_, uid, _ := splitKey(item.Key)
		keyword := fmt.Sprint("round", round)
		store := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.Flag(keyword)}}
		o.check(o.client.Store(imap.UIDSetNum(uid), store, nil).Close())

		got, err := r.Changes(t.Context(), "INBOX", since, 100, nil)

		if err != nil || len(got.Flagged) != 1 || got.Flagged[0].Key != item.Key || !mailbox.HasFlag(got.Flagged[0].Flags, keyword) {
			t.Fatalf("round %d: flagged %+v, %v; want %s with %s", round, got.Flagged, err, item.Key, keyword)
		}
		since = got.Next
	}
}

// TestRestart kills the server of an idling connection and checks that the same
// Reader recovers.
func TestRestart(t *testing.T) {
	t.Parallel()

	s, dovecot := newDovecot(t)
	c := s.config("alice")
	c.Attempts = 1000 // while the server is down
	r := s.reader(t, c)
	s.other(t, "alice").deliver("INBOX", mailboxtest.Message(0, "hello"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var since mailbox.Cursor
	next := func() (found []mailbox.Item) {
		t.Helper()
		for len(found) == 0 {
			if err := r.Wait(ctx, []string{"INBOX"}); err != nil {
				t.Fatal(err)
			}
			changes, err := r.Changes(ctx, "INBOX", since, 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			if changes.Reset || len(changes.Gone) > 0 {
				t.Fatalf("after a restart: %+v", changes)
			}
			found, since = changes.New, changes.Next
		}
		return found
	}
	if got := next(); len(got) != 1 {
		t.Fatalf("before the restart: %+v", got)
	}
	for n := 1; n <= 2; n++ {
		dovecot.Kill()
		if err := dovecot.Deliver("alice", "INBOX", mailboxtest.Message(n, "hello")); err != nil {
			t.Fatal(err)
		}
		if err := dovecot.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := next(); len(got) != 1 {
			t.Errorf("after restart %d: %+v", n, got)
		}
		s.other(t, "alice").deliver("Archive", mailboxtest.Message(10+n, "hello"))
		s.other(t, "alice").deliver("INBOX", mailboxtest.Message(20+n, "hello"))
		if got := next(); len(got) != 1 {
			t.Errorf("pushed after restart %d: %+v", n, got)
		}
	}
}

// TestUnreachable checks that a call to an unreachable server fails as an
// outage after the configured attempts.
func TestUnreachable(t *testing.T) {
	t.Parallel()

	s, dovecot := newDovecot(t)
	dovecot.Kill()
	c := s.config("alice")
	c.Attempts = 3
	_, err := s.reader(t, c).Folders(t.Context())
	if !errors.Is(err, errConnection) || errors.Is(err, mailbox.ErrDenied) {
		t.Errorf("folders of a server that is away: %v", err)
	}
}

// TestBackfill reads 5,000 messages backwards, page by page.
func TestBackfill(t *testing.T) {
	t.Parallel()

	s, dovecot := newDovecot(t)
	const messages = 5000
	for n := range messages {
		if err := dovecot.Deliver("alice", "INBOX", mailboxtest.Message(n, "hello")); err != nil {
			t.Fatal(err)
		}
	}
	r := s.reader(t, s.config("alice"))
	seen := map[string]bool{}
	var before mailbox.Cursor
	last := imap.UID(messages + 1)
	for page := 0; ; page++ {
		if page == 7 { // continued by another process
			r = s.reader(t, s.config("alice"))
		}
		items, next, err := r.Older(t.Context(), "INBOX", before, 300)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		for _, item := range items {
			_, uid, err := splitKey(item.Key)
			if err != nil || uid >= last || seen[item.Key] {
				t.Fatalf("message %s after UID %d: %v", item.Key, last, err)
			}
			last, seen[item.Key] = uid, true
		}
		if len(next) > 200 {
			t.Fatalf("the cursor grows: %s", next)
		}
		before = next
	}
	if len(seen) != messages {
		t.Errorf("%d messages, want %d", len(seen), messages)
	}
}

// TestTLS checks that nothing is sent without TLS unless allowed, and nothing
// to a server with an invalid certificate.
func TestTLS(t *testing.T) {
	t.Parallel()

	_, dovecot := newDovecot(t)
	s := &server{address: dovecot.TLSAddress, password: "secret-of-the-tests"}
	secure := s.config("alice")
	secure.Security = TLS
	trusting := secure
	trusting.TLSConfig = tlsRoots(dovecot.Roots)
	if _, err := s.reader(t, trusting).Folders(t.Context()); err != nil {
		t.Errorf("TLS with a certificate that is trusted: %v", err)
	}
	startTLS := trusting
	startTLS.Security, startTLS.Address = StartTLS, dovecot.Address
	if _, err := s.reader(t, startTLS).Folders(t.Context()); err != nil {
		t.Errorf("STARTTLS with a certificate that is trusted: %v", err)
	}
	untrusted := startTLS
	untrusted.TLSConfig = nil
	noTLS := secure
	noTLS.Address = dovecot.Address
	forbidden := secure
	forbidden.Networks = nil
	for name, c := range map[string]Config{
		"a certificate that nobody trusts":           secure,
		"STARTTLS, a certificate that nobody trusts": untrusted,
		"a port without TLS":                         noTLS,
		"an address that is not allowed":             forbidden,
	} {
		if _, err := s.reader(t, c).Folders(t.Context()); !errors.Is(err, mailbox.ErrDenied) {
			t.Errorf("%s: %v, want ErrDenied", name, err)
		}
	}
	if guard := (Config{Security: Plain}).guard(); !guard.LoopbackOnly {
		t.Error("without TLS a connection may leave the machine")
	}
	if guard := (Config{Security: Plain, AllowPlain: true}).guard(); guard.LoopbackOnly {
		t.Error("AllowPlain allows nothing")
	}
}

// TestWrongPassword checks that a refused login is reported as such, once, and
// that the error does not contain the secret.
func TestWrongPassword(t *testing.T) {
	t.Parallel()

	s, dovecot := newDovecot(t)
	memory := fullMemory(t)
	memory.addUser("alice")
	for _, address := range []string{dovecot.Address, memory.address} {
		asked := 0
		c := s.config("alice")
		c.Address = address
		c.Secret = func(context.Context) (string, error) { asked++; return "canary-password", nil }
		for _, login := range []Login{Password, XOAuth2, OAuthBearer} {
			asked = 0
			c.Login = login
			_, err := s.reader(t, c).Folders(t.Context())
			if !errors.Is(err, mailbox.ErrDenied) || asked != 1 || strings.Contains(fmt.Sprint(err), "canary") {
				t.Errorf("login %q with a wrong secret at %s: %v after %d attempts", login, address, err, asked)
			}
		}
	}
}
