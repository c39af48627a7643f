package engine_test

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

const user = "mara"

// server is a mail server with one user, who has INBOX, Sent and Archive.
type server struct {
	t                 testing.TB
	address, password string
	// void gives a folder another UIDVALIDITY and keeps its messages.
	void func(folder string)
}

// servers are the servers that the tests of the engine run against.
func servers() map[string]func(*testing.T) *server {
	return map[string]func(*testing.T) *server{
		"Dovecot":           func(t *testing.T) *server { s, _ := newDovecot(t); return s },
		"without CONDSTORE": func(t *testing.T) *server { return newMemory(t) },
	}
}

func newDovecot(t *testing.T) (*server, *dovecottest.Server) {
	t.Helper()
	d := dovecottest.New(t)
	return &server{t: t, address: d.Address, password: dovecottest.Password, void: func(folder string) {
		if err := d.ChangeValidity(user, folder); err != nil {
			t.Fatal(err)
		}
	}}, d
}

// newMemory starts the library's server, which has IDLE and no CONDSTORE.
func newMemory(t testing.TB) *server {
	t.Helper()
	memory, account := imapmemserver.New(), imapmemserver.NewUser(user, "secret-of-memory")
	create := func(folder string) {
		var options *goimap.CreateOptions
		if folder == "Sent" {
			options = &goimap.CreateOptions{SpecialUse: []goimap.MailboxAttr{goimap.MailboxAttrSent}}
		}
		if err := account.Create(folder, options); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"INBOX", "Sent", "Archive"} {
		create(folder)
	}
	memory.AddUser(account)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps:         goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapIdle: {}, goimap.CapMove: {}, goimap.CapUIDPlus: {}},
		InsecureAuth: true, Logger: log.New(io.Discard, "", 0),
	})
	var running sync.WaitGroup
	running.Go(func() { _ = served.Serve(listener) })
	t.Cleanup(func() {
		if err := served.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	s := &server{t: t, address: listener.Addr().String(), password: "secret-of-memory"}
	s.void = func(folder string) {
		bodies := s.bodies(folder)
		if err := account.Delete(folder); err != nil {
			t.Fatal(err)
		}
		create(folder)
		for _, body := range bodies {
			s.deliver(folder, string(body))
		}
	}
	return s
}

// through puts a proxy in front of a server, which changes the lines that it
// sends.
func (s *server) through(change func(line string) string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	var running sync.WaitGroup
	pass := func(client net.Conn, address string) {
		defer client.Close()
		upstream, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer upstream.Close()
		running.Go(func() {
			_, _ = io.Copy(upstream, client)
			upstream.Close()
		})
		for lines := bufio.NewReader(upstream); ; {
			line, err := lines.ReadString('\n')
			if _, failed := io.WriteString(client, change(line)); failed != nil || err != nil {
				return
			}
		}
	}
	address := s.address
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { pass(client, address) })
		}
	})
	s.t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	s.address = listener.Addr().String()
}

// fixture returns a fixture whose account is on the server. Without
// notifications, it is read once an hour.
func (s *server) fixture() *fixture {
	s.t.Helper()
	f := newFixture(s.t)
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	f.exec("DELETE FROM triage_accounts") // of the Maildir
	f.put("work", func(a *account.Account) {
		a.Kind, a.Every = account.IMAP, time.Hour
		a.Connection = account.Connection{Host: host, User: user, Security: account.Plain, TrustedHost: "mx.example.net"}
		a.Connection.Port, _ = strconv.Atoi(port)
	})
	f.open = s.opener(s.password)
	return f
}

// opener opens accounts with a password, and fails quickly.
func (s *server) opener(password string) func(context.Context, account.Account) (mailbox.Reader, error) {
	return func(_ context.Context, a account.Account) (mailbox.Reader, error) {
		return imap.NewReader(imap.Config{
			Address: s.address, Security: imap.Plain, Username: user, Networks: safehttp.Loopback(),
			Secret: func(context.Context) (string, error) { return password, nil },
			Quota:  quota.New(quota.Provider{}), Backoff: 5 * time.Millisecond, Attempts: 2, Interval: a.Every,
		})
	}
}

// other runs a task as another program that uses the account.
func (s *server) other(folder string, task func(*imapclient.Client)) {
	s.t.Helper()
	client, err := imapclient.DialInsecure(s.address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	s.check(client.Login(user, s.password).Wait())
	if folder != "" {
		_, err = client.Select(folder, nil).Wait()
		s.check(err)
	}
	task(client)
}

func (s *server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("another program: %v", err)
	}
}

func (s *server) deliver(folder, raw string) {
	s.t.Helper()
	s.other("", func(c *imapclient.Client) { s.add(c, folder, raw, nil) })
}

func (s *server) add(c *imapclient.Client, folder, raw string, options *goimap.AppendOptions) {
	s.t.Helper()
	command := c.Append(folder, int64(len(raw)), options)
	_, err := io.WriteString(command, raw)
	s.check(err)
	s.check(command.Close())
	_, err = command.Wait()
	s.check(err)
}

// uids finds a message by its Message-ID.
func (s *server) uids(c *imapclient.Client, id string) goimap.UIDSet {
	s.t.Helper()
	data, err := c.UIDSearch(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: id}}}, nil).Wait()
	s.check(err)
	if len(data.AllUIDs()) != 1 {
		s.t.Fatalf("%d messages %s, want 1", len(data.AllUIDs()), id)
	}
	return goimap.UIDSetNum(data.AllUIDs()...)
}

func (s *server) flag(folder, id string, op goimap.StoreFlagsOp, flag goimap.Flag) {
	s.t.Helper()
	s.other(folder, func(c *imapclient.Client) {
		s.check(c.Store(s.uids(c, id), &goimap.StoreFlags{Op: op, Flags: []goimap.Flag{flag}}, nil).Close())
	})
}

func (s *server) move(from, to, id string) {
	s.t.Helper()
	s.other(from, func(c *imapclient.Client) {
		_, err := c.Move(s.uids(c, id), to).Wait()
		s.check(err)
	})
}

func (s *server) bodies(folder string) (bodies [][]byte) {
	s.t.Helper()
	s.other(folder, func(c *imapclient.Client) {
		section := &goimap.FetchItemBodySection{Peek: true}
		messages, err := c.Fetch(goimap.SeqSet{{Start: 1, Stop: 0}}, &goimap.FetchOptions{BodySection: []*goimap.FetchItemBodySection{section}}).Collect()
		s.check(err)
		for _, m := range messages {
			bodies = append(bodies, m.FindBodySection(section))
		}
	})
	return bodies
}

// started runs an engine until stop is called or the test ends.
func (f *fixture) started(change func(*engine.Config)) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	e := f.engine(change)
	go func() { ended <- e.Run(ctx) }() // stop waits for it
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("Run = %v", err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}
