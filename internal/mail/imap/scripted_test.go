package imap

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

func tlsRoots(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

// script starts a server that answers each command by a function of its name
// and arguments; after "" it does not answer.
func script(t *testing.T, caps string, answer func(command, arguments string) string) *server {
	t.Helper()
	caps = strings.TrimSpace("IMAP4rev1 " + caps)
	address := scripted(t, nil, func(conn net.Conn) {
		fmt.Fprintf(conn, "* OK [CAPABILITY %s] ready\r\n", caps)
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			tag, rest, _ := strings.Cut(lines.Text(), " ")
			command, arguments, _ := strings.Cut(rest, " ")
			if command == "UID" {
				var sub string
				sub, arguments, _ = strings.Cut(arguments, " ")
				command += " " + sub
			}
			reply := answer(command, arguments)
			if reply == "" {
				switch command {
				case "LOGIN", "AUTHENTICATE":
					reply = "{tag} OK [CAPABILITY " + caps + "] in\r\n"
				case "CAPABILITY":
					reply = "* CAPABILITY " + caps + "\r\n{tag} OK\r\n"
				case "EXAMINE", "SELECT":
					reply = "* 1 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 2] n\r\n{tag} OK [READ-ONLY]\r\n"
				}
			}
			if _, err := conn.Write([]byte(strings.ReplaceAll(reply, "{tag}", tag))); err != nil {
				return
			}
		}
	})
	return &server{address: address, password: "secret", addUser: func(string) {}}
}

// TestLimits checks that a server's limits are reported by kind and delay the
// following commands.
func TestLimits(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]error{
		"NO [LIMIT] canary":                                  mailbox.ErrBusy,
		"NO [OVERQUOTA] canary":                              mailbox.ErrBusy,
		"NO [THROTTLED] canary":                              mailbox.ErrBusy,
		"NO [ALERT] Too many simultaneous connections":       mailbox.ErrBusy,
		"NO [AUTHENTICATIONFAILED] canary":                   mailbox.ErrDenied,
		"NO canary":                                          mailbox.ErrDenied,
		"NO [UNAVAILABLE] canary":                            errConnection,
		"BAD canary":                                         mailbox.ErrDenied,
		"NO [CANARY" + strings.Repeat("X", 100) + "] canary": mailbox.ErrDenied,
	} {
		s := script(t, "", func(command, _ string) string {
			if command == "LOGIN" {
				return "{tag} " + text + "\r\n"
			}
			return ""
		})
		c := s.config("alice")
		c.Attempts, c.Quota = 2, quota.New(quota.Provider{})
		r := s.reader(t, c)
		_, err := r.Folders(t.Context())
		if !errors.Is(err, want) || strings.Contains(strings.ToLower(err.Error()), "canary") {
			t.Errorf("%s: %v, want %v and no text of the server", text, err, want)
		}
		if want != mailbox.ErrBusy {
			continue
		}
		if after := mailbox.RetryAfter(err); after < 45*time.Second || after > 75*time.Second {
			t.Errorf("%s: try again after %s", text, after)
		}
		if _, err := s.reader(t, c).Folders(t.Context()); !errors.Is(err, mailbox.ErrBusy) {
			t.Errorf("%s: the next command was not held back: %v", text, err)
		}
	}
}

// TestXOAuth2 checks the initial response in the form that Microsoft and Google
// describe.
func TestXOAuth2(t *testing.T) {
	t.Parallel()

	var sent atomic.Value
	s := script(t, "SASL-IR AUTH=XOAUTH2", func(command, arguments string) string {
		switch command {
		case "AUTHENTICATE":
			sent.Store(arguments)
		case "LIST":
			return "* LIST () \"/\" INBOX\r\n{tag} OK\r\n"
		}
		return ""
	})
	c := s.config("alice@mailbox.test")
	c.Login = XOAuth2
	if _, err := s.reader(t, c).Folders(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "XOAUTH2 " + base64.StdEncoding.EncodeToString([]byte("user=alice@mailbox.test\x01auth=Bearer secret\x01\x01"))
	if sent.Load() != want {
		t.Errorf("sent %q, want %q", sent.Load(), want)
	}
}

// TestServerWithWrongSizes checks that a server that reports a wrong size or sends huge
// ranges costs no memory and does not stop the other messages.
func TestServerWithWrongSizes(t *testing.T) {
	t.Parallel()

	s := script(t, "ESEARCH", func(command, arguments string) string {
		switch {
		case command == "UID SEARCH":
			return "* ESEARCH (TAG \"{tag}\") UID ALL 1:4294967295\r\n{tag} OK\r\n"
		case command == "UID FETCH" && strings.Contains(arguments, "BODY.PEEK") && strings.HasPrefix(arguments, "1"):
			return "* 1 FETCH (UID 1 BODY[] {2000000000}\r\n" + strings.Repeat("x", 4096)
		case command == "UID FETCH" && strings.Contains(arguments, "BODY.PEEK"):
			return "* 2 FETCH (UID 2 BODY[] {5}\r\nhello)\r\n* 3 FETCH (UID 99 BODY[] {5}\r\nother)\r\n{tag} OK\r\n"
		case command == "UID FETCH":
			return "* 1 FETCH (UID 1 FLAGS () RFC822.SIZE 10 INTERNALDATE \"02-Jan-2006 15:04:05 +0000\")\r\n{tag} OK\r\n"
		}
		return ""
	})
	r := s.reader(t, s.config("alice"))
	if changes, err := r.Changes(t.Context(), "INBOX", nil, 10, nil); err != nil || len(changes.New) != 1 {
		t.Errorf("changes: %+v, %v", changes, err)
	}
	if older, _, err := r.Older(t.Context(), "INBOX", nil, 10); !errors.Is(err, errConnection) {
		t.Errorf("older messages that are never listed: %+v, %v; want an outage", older, err)
	}
	var items []mailbox.Item
	for uid := range 2 {
		items = append(items, mailbox.Item{Location: mailbox.Location{Folder: "INBOX", Key: keyOf(7, imap.UID(uid+1))}, Size: 10})
	}
	got := map[string]string{}
	err := r.Read(t.Context(), items, func(item mailbox.Item, raw []byte, err error) error {
		got[item.Key] = fmt.Sprint(string(raw), err)
		return nil
	})
	want := map[string]string{"7:1": fmt.Sprint("", mailbox.ErrTooLarge), "7:2": fmt.Sprint("hello", nil)}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
}

// TestGarbage checks that answers in another protocol are an outage.
func TestGarbage(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"\x00\x00\x00\r\n", "* 1 FETCH (UID\r\n", "* LIST\r\n", "{tag} MAYBE\r\n", "* BYE gone\r\n", "{tag} OK [COPYUID\r\n",
		"* ESEARCH (TAG \"{tag}\") UID ALL *\r\n{tag} OK\r\n", "* SEARCH 99999999999999\r\n{tag} OK\r\n",
	} {
		s := script(t, "ESEARCH", func(command, _ string) string {
			switch command {
			case "LOGIN", "CAPABILITY", "EXAMINE":
				return ""
			}
			return text
		})
		c := s.config("alice")
		c.Attempts, c.Timeout = 2, 50*time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := s.reader(t, c).Changes(ctx, "INBOX", nil, 10, nil)
		if err == nil || ctx.Err() != nil {
			t.Errorf("%q: %v, %v", text, err, ctx.Err())
		}
		cancel()
	}
}

// TestSilence checks that a call to a silent server ends with its context.
func TestSilence(t *testing.T) {
	t.Parallel()

	s := script(t, "", func(command, _ string) string { return "" })
	r := s.reader(t, s.config("alice"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := r.Folders(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("folders: %v, want the error of the context", err)
	}
	silent := scripted(t, nil, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	c := s.config("alice")
	c.Address = silent
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.reader(t, c).Folders(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("no greeting: %v, want the error of the context", err)
	}
}

// TestDeadIdle checks that the renewal of IDLE finds and replaces a dead
// connection.
func TestDeadIdle(t *testing.T) {
	t.Parallel()

	var idles atomic.Int64
	connections := make(chan net.Conn, 10)
	address := scripted(t, nil, func(conn net.Conn) {
		connections <- conn
		fmt.Fprintf(conn, "* OK [CAPABILITY IMAP4rev1 IDLE] ready\r\n")
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			tag, rest, _ := strings.Cut(lines.Text(), " ")
			command, _, _ := strings.Cut(rest, " ")
			switch command {
			case "LOGIN":
				fmt.Fprintf(conn, "%s OK [CAPABILITY IMAP4rev1 IDLE] in\r\n", tag)
			case "EXAMINE":
				fmt.Fprintf(conn, "* 0 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n%s OK\r\n", tag)
			case "IDLE":
				if idles.Add(1) == 1 {
					fmt.Fprintf(conn, "+ idling\r\n")
					_ = conn.(*net.TCPConn).CloseWrite() // as if the path back were cut
					continue
				}
				fmt.Fprintf(conn, "+ idling\r\n* 1 EXISTS\r\n")
			}
		}
	})
	s := &server{address: address, password: "secret"}
	c := s.config("alice")
	c.IdleRenewal = 10 * time.Millisecond
	r := s.reader(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for idles.Load() < 2 {
		if err := r.Wait(ctx, []string{"INBOX"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(connections) < 2 {
		t.Error("the dead connection was not replaced")
	}
}

// TestNoIdle checks that a Wait ends after the interval if the server has no
// IDLE.
func TestNoIdle(t *testing.T) {
	t.Parallel()

	s := newMemory(t, imap.CapUIDPlus)
	s.addUser("alice")
	c := s.config("alice")
	c.Interval = time.Millisecond
	r := s.reader(t, c)
	for range 3 {
		if err := r.Wait(t.Context(), []string{"INBOX", "Archive", "Other"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfig checks the required fields of a configuration.
func TestConfig(t *testing.T) {
	t.Parallel()

	valid := Config{Address: "mail.test:993", Username: "alice", Secret: func(context.Context) (string, error) { return "", nil }}
	if _, err := NewReader(valid); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no port":          func(c *Config) { c.Address = "mail.test" },
		"no host":          func(c *Config) { c.Address = ":993" },
		"no user":          func(c *Config) { c.Username = "" },
		"no secret":        func(c *Config) { c.Secret = nil },
		"unknown security": func(c *Config) { c.Security = "ssl" },
		"unknown login":    func(c *Config) { c.Login = "ntlm" },
	} {
		c := valid
		change(&c)
		if _, err := NewReader(c); !errors.Is(err, mailbox.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
		if _, err := NewWriter(c, mailboxtest.Identify); !errors.Is(err, mailbox.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}
