package mail_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// smtpServer is a server for outgoing mail.
type smtpServer struct {
	// implicit begins with TLS; otherwise it offers STARTTLS unless plain is set.
	implicit, plain bool
	// answers replaces the answers to commands by their first word; DOT is the end
	// of the data. An empty answer closes the connection.
	answers map[string]string

	listener net.Listener
	config   *tls.Config
	wg       sync.WaitGroup
	mu       sync.Mutex
	mails    []string
	to       []string
	auth     string
}

func (s *smtpServer) start(t *testing.T) *smtpServer {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	s.config = certified.TLS.Clone()
	s.config.NextProtos = nil
	certified.Close()
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.wg.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.wg.Wait()
	})
	return s
}

// serve speaks with one client.
func (s *smtpServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	secure := s.implicit
	if secure {
		conn = tls.Server(conn, s.config)
	}
	lines := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 ready")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		word, _, _ := strings.Cut(line, " ")
		if answer, ok := s.answers[word]; ok {
			if answer == "" {
				return
			}
			say(answer)
			continue
		}
		switch word {
		case "EHLO":
			say("250-here")
			if !secure && !s.plain {
				say("250-STARTTLS")
			}
			say("250 AUTH PLAIN XOAUTH2")
		case "STARTTLS":
			say("220 go")
			conn, secure = tls.Server(conn, s.config), true
			lines = bufio.NewReader(conn)
		case "AUTH":
			s.mu.Lock()
			s.auth = line
			s.mu.Unlock()
			say("235 welcome")
		case "RCPT":
			s.mu.Lock()
			s.to = append(s.to, line)
			s.mu.Unlock()
			say("250 fine")
		case "DATA":
			say("354 go on")
			var body strings.Builder
			for line != ".\r\n" {
				if line, err = lines.ReadString('\n'); err != nil {
					return
				}
				body.WriteString(line)
			}
			s.mu.Lock()
			s.mails = append(s.mails, body.String())
			s.mu.Unlock()
			answer, ok := s.answers["DOT"]
			if ok && answer == "" {
				return
			}
			if !ok {
				answer = "250 taken"
			}
			say(answer)
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

func (s *smtpServer) received() (mails, to []string, auth string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mails, s.to, s.auth
}

// submitter returns how to reach the server with a kind of protection.
func (s *smtpServer) submitter(t *testing.T, kind string) mail.Submitter {
	t.Helper()
	at, _ := s.listener.Addr().(*net.TCPAddr)
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	return mail.Submitter{
		Submission: mail.Submission{Host: "127.0.0.1", Port: at.Port, TLS: kind}, User: "ada", Secret: func(context.Context) (string, error) { return "hush secret", nil }, Guard: local, TLSConfig: &tls.Config{RootCAs: roots},
	}
}

func withSMTP(by mail.Submitter) func(*mail.Config) {
	return func(cfg *mail.Config) {
		work := cfg.Accounts["work"]
		work.Submitter = by
		cfg.Accounts["work"] = work
	}
}

func sendArgs() object {
	return object{
		"account": "work", "to": []string{"bob@example.com", "eve@example.com"}, "cc": []string{"bob@example.com"}, "subject": "Dates", "text": "Hello\n.\nAda",
	}
}

// TestSend sends a mail with each protection and method of authentication, and
// looks for its copy.
func TestSend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind  string
		token bool
		auth  string
	}{
		"implicit":         {"implicit", false, "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00ada\x00hush secret"))},
		"STARTTLS":         {"starttls", false, "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00ada\x00hush secret"))},
		"a token":          {"starttls", true, "AUTH XOAUTH2 " + base64.StdEncoding.EncodeToString([]byte("user=ada\x01auth=Bearer hush secret\x01\x01"))},
		"the same machine": {"none", false, "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00ada\x00hush secret"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := (&smtpServer{implicit: test.kind == "implicit", plain: test.kind == "none"}).start(t)
			by := server.submitter(t, test.kind)
			by.XOAuth2 = test.token
			f := newFixture(t, withSMTP(by))
			absent := f.answer(f.call(mail.ToolSent, object{"account": "work", "key": "key"}), source.KindDone, "")

			first := f.attempt(1, "key", mail.ToolSend, sendArgs())
			again := f.attempt(1, "key", mail.ToolSend, sendArgs())

			f.answer(first, source.KindDone, "")
			f.answer(again, source.KindConflict, source.CodeConflict)
			present := f.answer(f.call(mail.ToolSent, object{"account": "work", "key": "key"}), source.KindDone, "")
			mails, to, auth := server.received()
			if len(mails) != 1 || len(to) != 2 || auth != test.auth {
				t.Fatalf("%d mails to %v with %s, want 1 to two recipients with %s", len(mails), to, auth, test.auth)
			}
			for _, part := range []string{"Message-Id: <" + mail.DraftID("key", "work", owner) + ">", "From: <" + owner + ">", "Date: ", "\r\nHello\r\n..\r\nAda"} {
				if !strings.Contains(strings.ReplaceAll(mails[0], "Message-ID", "Message-Id"), part) {
					t.Errorf("the mail lacks %q:\n%s", part, mails[0])
				}
			}
			if copies := f.account.Raw("Sent", mail.DraftID("key", "work", owner)); len(copies) != 1 || absent["found"] != false || present["found"] != true {
				t.Errorf("%d copies; found %v, then %v", len(copies), absent["found"], present["found"])
			}
		})
	}
}

// TestBrief sends a brief to the owner once, and to nobody else.
func TestBrief(t *testing.T) {
	t.Parallel()
	if always, fixed := mail.AlwaysPerson(mail.ToolBrief); !always || !slices.Equal(fixed, []string{"/account", "/to"}) {
		t.Errorf("AlwaysPerson = %v, %q: a grant that does not fix the recipient approves briefs", always, fixed)
	}
	server := (&smtpServer{}).start(t)
	f := newFixture(t, withSMTP(server.submitter(t, "starttls")))
	args := func(to any) object {
		return object{"account": "work", "to": to, "subject": "Morning brief", "text": "Mail since Monday: 3"}
	}
	for _, to := range []string{"eve@example.com", owner + ".evil.example", "x" + owner} {
		f.answer(f.attempt(1, "key", mail.ToolBrief, args(to)), source.KindRefused, source.CodeRejected)
	}

	f.answer(f.attempt(1, "key", mail.ToolBrief, args(strings.ToUpper(owner))), source.KindDone, "")
	f.answer(f.attempt(1, "key", mail.ToolBrief, args(owner)), source.KindConflict, source.CodeConflict)
	found := f.answer(f.call(mail.ToolSent, object{"account": "work", "key": "key"}), source.KindDone, "")

	mails, to, _ := server.received()
	if len(mails) != 1 || len(to) != 1 || !strings.Contains(to[0], owner) || found["found"] != true {
		t.Fatalf("%d mails to %v; found %v", len(mails), to, found["found"])
	}
	if !strings.Contains(mails[0], "Auto-Submitted: auto-generated") || !strings.Contains(mails[0], "To: <"+owner+">") {
		t.Errorf("the brief is\n%s", mails[0])
	}
}

// TestSendWithoutAnAnswer checks the outcome of every failure: only a mail whose
// end was sent and not answered is unknown.
func TestSendWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers map[string]string
		kind    source.Kind
		code    string
	}{
		"dropped after the data":  {map[string]string{"DOT": ""}, source.KindUnknown, source.CodeLost},
		"no answer to the data":   {map[string]string{"DOT": "354 hush go on"}, source.KindUnknown, source.CodeLost},
		"rejected after the data": {map[string]string{"DOT": "554 hush spam"}, source.KindRefused, source.CodeRejected},
		"later, after the data":   {map[string]string{"DOT": "451 hush later"}, source.KindRetry, source.CodeRateLimited},
		"dropped before the data": {map[string]string{"DATA": ""}, source.KindRetry, source.CodeUnreachable},
		"a rejected recipient":    {map[string]string{"RCPT": "550 hush nobody"}, source.KindRefused, source.CodeRejected},
		"a recipient, later":      {map[string]string{"RCPT": "450 hush full"}, source.KindRetry, source.CodeRateLimited},
		"a rejected login":        {map[string]string{"AUTH": "535 hush login"}, source.KindRefused, source.CodeUnauthorized},
		"no STARTTLS":             {map[string]string{"EHLO": "250 here"}, source.KindRefused, source.CodeUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := (&smtpServer{answers: test.answers}).start(t)
			f := newFixture(t, withSMTP(server.submitter(t, "starttls")))

			out := f.attempt(1, "key", mail.ToolSend, sendArgs())

			f.answer(out, test.kind, test.code)
			if n := len(f.account.Messages("Sent")); n != 0 {
				t.Errorf("%d copies of a mail that was not confirmed", n)
			}
		})
	}
}

// TestSendTakesEveryConfirmation confirms a mail with another code than 250. Sent
// again, it would arrive twice.
func TestSendTakesEveryConfirmation(t *testing.T) {
	t.Parallel()
	server := (&smtpServer{answers: map[string]string{"DOT": "251 taken, to be forwarded"}}).start(t)
	f := newFixture(t, withSMTP(server.submitter(t, "starttls")))

	f.answer(f.attempt(1, "key", mail.ToolSend, sendArgs()), source.KindDone, "")

	if copies := f.account.Raw("Sent", mail.DraftID("key", "work", owner)); len(copies) != 1 {
		t.Errorf("%d copies, want 1", len(copies))
	}
}

// TestSendKeepsItsWord checks a mail that was sent and whose copy is not stored,
// and accounts that cannot send.
func TestSendKeepsItsWord(t *testing.T) {
	t.Parallel()
	server := (&smtpServer{}).start(t)
	f := newFixture(t, withSMTP(server.submitter(t, "starttls")))
	f.account.Fail("Append", mailboxtest.Fault{Err: mailboxtest.ErrDown})
	if result := f.answer(f.attempt(1, "key", mail.ToolSend, sendArgs()), source.KindDone, ""); result["stored"] != false {
		t.Errorf("result = %v", result)
	}
	f.account.RemoveFolder("Sent")
	f.answer(f.attempt(1, "other", mail.ToolSend, sendArgs()), source.KindRefused, source.CodeNotFound)
	without := newFixture(t)
	without.answer(without.attempt(1, "key", mail.ToolSend, sendArgs()), source.KindRefused, source.CodeUnsupported)
	untrusted := server.submitter(t, "starttls")
	untrusted.TLSConfig = nil
	other := newFixture(t, withSMTP(untrusted))
	other.answer(other.attempt(1, "key", mail.ToolSend, sendArgs()), source.KindRefused, source.CodeUnauthorized)
	if mails, _, _ := server.received(); len(mails) != 1 {
		t.Errorf("%d mails, want 1", len(mails))
	}
}

// newAiosmtpd starts a server of another author, which stores mail in a Maildir.
func newAiosmtpd(t *testing.T) (at *net.TCPAddr, dir string) {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-c", "import aiosmtpd").Run(); err != nil {
		t.Skip("no aiosmtpd is installed: scripts/servers.sh installs it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, _ = listener.Addr().(*net.TCPAddr)
	_ = listener.Close() // the port is for the server
	dir = filepath.Join(t.TempDir(), "mail")
	command := exec.CommandContext(t.Context(), python, "-m", "aiosmtpd", "-n", "-l", at.String(), "-c", "aiosmtpd.handlers.Mailbox", dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = conn.Close()
			return at, dir
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestSendToAiosmtpd sends a mail to a server of another author.
func TestSendToAiosmtpd(t *testing.T) {
	t.Parallel()
	at, dir := newAiosmtpd(t)
	f := newFixture(t, withSMTP(mail.Submitter{Submission: mail.Submission{Host: "127.0.0.1", Port: at.Port, TLS: "none"}, Guard: local}))

	f.answer(f.attempt(1, "key", mail.ToolSend, sendArgs()), source.KindDone, "")

	files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(raw), mail.DraftID("key", "work", owner)) || !strings.Contains(string(raw), "\n.\nAda") {
		t.Errorf("the server has %q, %v", raw, err)
	}
}
