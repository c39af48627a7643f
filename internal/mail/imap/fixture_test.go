package imap

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// server is an IMAP server on the local machine.
type server struct {
	address, password string
	// void makes the locations of a folder void.
	void func(t *testing.T, user, folder string)
	// addUser makes a user with an INBOX and a folder Archive.
	addUser func(user string)
	users   atomic.Int64
}

// newMemory starts the in-memory server of the library, which has no CONDSTORE.
func newMemory(t *testing.T, caps ...imap.Cap) *server {
	t.Helper()
	memory := imapmemserver.New()
	set := imap.CapSet{imap.CapIMAP4rev1: {}}
	for _, c := range caps {
		set[c] = struct{}{}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps: set, InsecureAuth: true, Logger: log.New(io.Discard, "", 0),
	})
	var running sync.WaitGroup
	running.Go(func() { _ = served.Serve(listener) })
	t.Cleanup(func() {
		served.Close()
		running.Wait()
	})
	s := &server{address: listener.Addr().String(), password: "secret"}
	var users sync.Map // of *imapmemserver.User, by name; parallel tests add to it
	s.addUser = func(name string) {
		user := imapmemserver.NewUser(name, s.password)
		for _, folder := range []string{"INBOX", "Archive"} {
			if err := user.Create(folder, nil); err != nil {
				t.Error(err)
			}
		}
		memory.AddUser(user)
		users.Store(name, user)
	}
	s.void = func(t *testing.T, name, folder string) {
		bodies := s.other(t, name).bodies(folder)
		stored, _ := users.Load(name)
		user := stored.(*imapmemserver.User)
		if err := user.Delete(folder); err != nil {
			t.Fatal(err)
		}
		if err := user.Create(folder, nil); err != nil {
			t.Fatal(err)
		}
		for _, body := range bodies {
			s.other(t, name).deliver(folder, body)
		}
	}
	return s
}

// fullMemory starts the library's server with all its extensions.
func fullMemory(t *testing.T) *server {
	return newMemory(t, imap.CapIdle, imap.CapMove, imap.CapUIDPlus, imap.CapESearch, imap.CapLiteralPlus)
}

// newDovecot starts a Dovecot.
func newDovecot(t *testing.T) (*server, *dovecottest.Server) {
	t.Helper()
	dovecot := dovecottest.New(t)
	return &server{
		address: dovecot.Address, password: dovecottest.Password, addUser: func(string) {},
		void: func(t *testing.T, user, folder string) {
			if err := dovecot.ChangeValidity(user, folder); err != nil {
				t.Fatal(err)
			}
		},
	}, dovecot
}

func (s *server) config(user string) Config {
	return Config{
		Address: s.address, Security: Plain, Username: user, Networks: safehttp.Loopback(),
		Secret:  func(context.Context) (string, error) { return s.password, nil },
		MaxSize: mailboxtest.MaxSize, Quota: quota.New(quota.Provider{}), Backoff: 5 * time.Millisecond,
		Interval: time.Hour,
	}
}

func (s *server) newUser(t *testing.T) string {
	user := fmt.Sprint("user", s.users.Add(1))
	s.addUser(user)
	return user
}

func (s *server) reader(t *testing.T, c Config) *Reader {
	t.Helper()
	r, err := NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (s *server) writer(t *testing.T, c Config) *Writer {
	t.Helper()
	w, err := NewWriter(c, mailboxtest.Identify)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// account returns an account with a new user for the contract tests.
func (s *server) account(t *testing.T) mailboxtest.Account { return s.accountOf(s.newUser(t)) }

func (s *server) accountOf(user string) mailboxtest.Account {
	return mailboxtest.Account{
		Inbox: "INBOX", Other: "Archive", Keywords: true,
		Reader:  func(t *testing.T) mailbox.Reader { return s.reader(t, s.config(user)) },
		Writer:  func(t *testing.T) mailbox.Writer { return s.writer(t, s.config(user)) },
		Deliver: func(t *testing.T, folder string, raw []byte) { s.other(t, user).deliver(folder, raw) },
		SetFlag: func(t *testing.T, folder, id, flag string) { s.other(t, user).setFlag(folder, id, flag) },
		Move:    func(t *testing.T, from, to, id string) { s.other(t, user).move(from, to, id) },
		Remove:  func(t *testing.T, folder, id string) { s.other(t, user).remove(folder, id) },
		Void:    func(t *testing.T, folder string) { s.void(t, user, folder) },
	}
}

// other is another client of the account, which uses the library directly.
type other struct {
	t      *testing.T
	client *imapclient.Client
}

func (s *server) other(t *testing.T, user string) *other {
	t.Helper()
	client, err := imapclient.DialInsecure(s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	o := &other{t, client}
	o.check(client.Login(user, s.password).Wait())
	return o
}

func (o *other) check(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatalf("another program: %v", err)
	}
}

func (o *other) deliver(folder string, raw []byte) {
	o.t.Helper()
	command := o.client.Append(folder, int64(len(raw)), nil)
	_, err := command.Write(raw)
	o.check(err)
	o.check(command.Close())
	_, err = command.Wait()
	o.check(err)
	o.client.Close()
}

// find opens a folder and returns the UIDs of a Message-ID.
func (o *other) find(folder, id string) imap.UIDSet {
	o.t.Helper()
	_, err := o.client.Select(folder, nil).Wait()
	o.check(err)
	data, err := o.client.UIDSearch(&imap.SearchCriteria{
		Header: []imap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: id}},
	}, nil).Wait()
	o.check(err)
	uids := data.AllUIDs()
	if len(uids) == 0 {
		o.t.Fatalf("no message %s in %s", id, folder)
	}
	return imap.UIDSetNum(uids...)
}

func (o *other) setFlag(folder, id, flag string) {
	o.t.Helper()
	store := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.Flag(flag)}}
	o.check(o.client.Store(o.find(folder, id), store, nil).Close())
	o.client.Close()
}

func (o *other) move(from, to, id string) {
	o.t.Helper()
	uids := o.find(from, id)
	_, err := o.client.Copy(uids, to).Wait()
	o.check(err)
	o.expunge(uids)
}

func (o *other) remove(folder, id string) {
	o.t.Helper()
	o.expunge(o.find(folder, id))
}

func (o *other) expunge(uids imap.UIDSet) {
	o.t.Helper()
	store := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}
	o.check(o.client.Store(uids, store, nil).Close())
	o.check(o.client.Expunge().Close())
	o.client.Close()
}

func (o *other) bodies(folder string) (bodies [][]byte) {
	o.t.Helper()
	_, err := o.client.Select(folder, nil).Wait()
	o.check(err)
	section := &imap.FetchItemBodySection{Peek: true}
	all := imap.SeqSet{{Start: 1, Stop: 0}}
	messages, err := o.client.Fetch(all, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	o.check(err)
	for _, message := range messages {
		bodies = append(bodies, message.FindBodySection(section))
	}
	return bodies
}

// wire records the bytes that a client sends through a proxy.
type wire struct {
	address string
	mu      sync.Mutex
	sent    strings.Builder
}

// commands returns the names of the commands that were sent.
func (w *wire) commands() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for line := range strings.Lines(w.sent.String()) {
		fields := strings.Fields(line)
		if len(fields) == 1 {
			names = append(names, fields[0])
		} else if len(fields) > 1 {
			name := fields[1]
			if name == "UID" {
				name += " " + fields[2]
			}
			names = append(names, name)
		}
	}
	return names
}

func (w *wire) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent.String()
}

// record starts a proxy in front of a server.
func record(t *testing.T, address string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				continue
			}
			running.Go(func() { w.copy(server, client, true) })
			running.Go(func() { w.copy(client, server, false) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return w
}

func (w *wire) copy(to, from net.Conn, keep bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if keep {
			w.mu.Lock()
			w.sent.Write(buffer[:n])
			w.mu.Unlock()
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// scripted starts a server that serves each connection by a function.
func scripted(t *testing.T, secure *tls.Config, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if secure != nil {
				conn = tls.Server(conn, secure)
			}
			running.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}
