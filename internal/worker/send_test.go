package worker_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// The answers of a server for outgoing mail. It takes the mail with the first
// three.
const (
	answerAccept = "accept"
	answerCut    = "cut"   // closes the connection
	answerHold   = "hold"  // never answers
	answerDrop   = "drop"  // closes the connection
	answerDefer  = "defer" // asks for another attempt
)

// submission is a server for outgoing mail on this machine.
type submission struct {
	port  int
	mails chan submitted
}

// submitted is a mail with the server's answer.
type submitted struct{ answer, raw string }

// next returns the next mail.
func (s *submission) next(t *testing.T) submitted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), txTimeout)
	defer cancel()
	select {
	case m := <-s.mails:
		return m
	case <-ctx.Done():
		t.Fatal("no mail was submitted")
		return submitted{}
	}
}

// startFake starts a server of our own.
func startFake(t *testing.T, answers ...string) *submission {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, _ := listener.Addr().(*net.TCPAddr)
	s := &submission{port: at.Port, mails: make(chan submitted, len(answers))}
	var wg sync.WaitGroup
	wg.Go(func() { // one client at a time
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answers = s.serve(conn, answers)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	return s
}

// serve answers one client, and returns the answers that are left.
func (s *submission) serve(conn net.Conn, answers []string) []string {
	lines := bufio.NewScanner(conn)
	_, _ = fmt.Fprint(conn, "220 ready\r\n")
	for lines.Scan() {
		reply := "250 fine"
		switch word, _, _ := strings.Cut(lines.Text(), " "); word {
		case "EHLO":
			reply = "250-here\r\n250 AUTH PLAIN"
		case "AUTH":
			reply = "235 welcome"
		case "DATA":
			_, _ = fmt.Fprint(conn, "354 go on\r\n")
			var raw strings.Builder
			for lines.Scan() && lines.Text() != "." {
				raw.WriteString(lines.Text() + "\r\n")
			}
			answer := answers[0]
			answers = answers[1:]
			s.mails <- submitted{answer, raw.String()}
			switch answer {
			case answerCut, answerDrop:
				return answers
			case answerHold:
				lines.Scan() // until the client is gone
				return answers
			case answerDefer:
				reply = "451 later"
			}
		case "QUIT":
			reply = "221 bye"
		}
		_, _ = fmt.Fprintf(conn, "%s\r\n", reply)
	}
	return answers
}

// startAiosmtpd starts a server of another author.
func startAiosmtpd(t *testing.T, answers ...string) *submission {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-c", "import aiosmtpd").Run(); err != nil {
		t.Skip("no aiosmtpd is installed: apt-get install python3-aiosmtpd")
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), python, append([]string{"-W", "ignore", "testdata/submission.py"}, answers...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	port, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "port "))
	s := &submission{port: port, mails: make(chan submitted, len(answers))}
	var wg sync.WaitGroup
	wg.Go(func() {
		for lines.Scan() {
			answer, text, _ := strings.Cut(lines.Text(), " ")
			raw, _ := base64.StdEncoding.DecodeString(text) // the test compares the mail
			s.mails <- submitted{answer, string(raw)}
		}
	})
	t.Cleanup(func() {
		_ = command.Process.Kill()
		wg.Wait()
		_ = command.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sendFixture is a fixture with a source of one account on Dovecot.
type sendFixture struct {
	*fixture
	user string
	box  *dovecottest.Server
	smtp *submission
	live *connection.Pool
}

// secretKey is the key of the credentials.
const secretKey = "aHVzaGh1c2hodXNoaHVzaGh1c2hodXNoaHVzaGh1c2g="

func newSendFixture(t *testing.T, box *dovecottest.Server, user string, smtp *submission) *sendFixture {
	t.Helper()
	f := &sendFixture{fixture: newFixture(t), user: user, box: box, smtp: smtp}
	cipher, pool, err := mailPool(secretKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.live = pool
	secret, err := json.Marshal(connection.Credentials{Accounts: map[string]string{"work": dovecottest.Password}})
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := cipher.Encrypt(f.tenant, "mailbox", secret)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(box.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `{"accounts":{"work":{"kind":"imap","host":%q,"port":%s,"tls":"none","user":%q,"from":"ada@example.org","smtp":{"host":"127.0.0.1","port":%d,"tls":"none"}}}}`,
		host, port, user, smtp.port)
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "mailbox", Kind: catalog.KindMail, Enabled: true, Config: config, Secret: encrypted})
	})
	if err := connection.NewRefresher(f.db, settings.NewCache(), f.live, slog.New(slog.DiscardHandler)).Refresh(t.Context(), f.tenant, "mailbox"); err != nil {
		t.Fatal(err)
	}
	return f
}

// mailPool returns a pool that connects to servers on this machine.
func mailPool(key string) (connection.Cipher, *connection.Pool, error) {
	cipher, err := connection.NewCipher(key)
	if err != nil {
		return cipher, nil, err
	}
	return cipher, connection.NewPool(connection.Config{Cipher: cipher, Networks: safehttp.Loopback()}), nil
}

// reconciled sets the reconcile rule of the documentation.
func (f *sendFixture) reconciled(resend bool) {
	f.t.Helper()
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := settings.NewCache().Current(ctx, tx, f.tenant)
		if err != nil {
			return err
		}
		return reconcile.Put(ctx, tx, snap, policy.Key{Source: "mailbox", Action: mail.ToolSend}, &reconcile.Rule{
			Tool: mail.ToolSent, Args: json.RawMessage(`{"account":"$inputs/account","key":"$key"}`), Happened: "/found", Resend: resend,
		})
	})
}

// send proposes a mail, which a person approves.
func (f *sendFixture) send() envelope.ActionID {
	f.t.Helper()
	answers, err := f.in.Accept(f.t.Context(), intake.Submitter{Tenant: f.tenant, Name: "agent", Names: identity.EveryName()}, []*envelope.Proposal{{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: mail.ToolSend, Source: "mailbox"},
		Args: json.RawMessage(`{"account":"work","to":["bob@example.com"],"subject":"Dates","text":"Tuesday."}`),
	}})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	f.approve(answers[0].Action, approval.Approval{})
	return answers[0].Action
}

// work runs a worker until nothing is due.
func (f *sendFixture) work() {
	f.t.Helper()
	stop := f.run(worker.NewPipeline(f.db, settings.NewCache(), f.live, config("w1")))
	f.empty()
	stop()
}

// sweep makes the reconciling reads, as an hour later.
func (f *sendFixture) sweep() {
	f.t.Helper()
	f.exec("UPDATE dead_letters SET created_at = created_at - interval '1 hour', reconcile_at = now()")
	n, err := reconcile.New(f.db, settings.NewCache(), f.live, reconcile.Config{}).Sweep(f.t.Context())
	if err != nil || n != 1 {
		f.t.Fatalf("Sweep = %d, %v, want one read", n, err)
	}
}

// stores has the server for outgoing mail store a copy in the folder for sent
// mail, as some do.
func (f *sendFixture) stores(m submitted) {
	f.t.Helper()
	if err := f.box.Deliver(f.user, "Sent", []byte(m.raw)); err != nil {
		f.t.Fatal(err)
	}
}

// notSent resolves an action as a person who says that the mail was not sent.
func (f *sendFixture) notSent(id envelope.ActionID) {
	f.t.Helper()
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		return deadletter.Resolve(ctx, tx, f.tenant, id, deadletter.Resolution{Actor: "ada"})
	})
}

// is checks the status of an action, its attempts, and the mails that the server
// has got.
func (f *sendFixture) is(id envelope.ActionID, want envelope.Status, attempts ...string) {
	f.t.Helper()
	if got := f.view(id).Envelope.Result.Status; got != want {
		f.t.Errorf("the action is %s, want %s", got, want)
	}
	if got := f.history(id); !slices.Equal(got, attempts) {
		f.t.Errorf("attempts = %q, want %q", got, attempts)
	}
	if n := len(f.smtp.mails); n != 0 {
		f.t.Errorf("%d more mails were submitted", n)
	}
}

// killed has a process take the action, and kills it when the server has the mail.
func (f *sendFixture) killed() submitted {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), killedEnv+"="+f.url, killedKeyEnv+"="+secretKey), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	m := f.smtp.next(f.t)
	if err := cmd.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	_ = cmd.Wait()
	f.exec("UPDATE outbox SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
	return m
}

// TestSentMailIsSentOnce sends mails whose confirmation is lost in each way, by a
// server of our own and by one of another author, from an account on Dovecot.
// Nothing but a copy in the folder for sent mail, or a person, settles one.
func TestSentMailIsSentOnce(t *testing.T) {
	t.Parallel()
	box := dovecottest.New(t)
	tests := map[string]struct {
		answers []string
		run     func(f *sendFixture)
	}{
		"deferred, then taken": {[]string{answerDefer, answerAccept}, func(f *sendFixture) {
			id := f.send()
			f.work()
			first, second := f.smtp.next(f.t), f.smtp.next(f.t)
			if messageID(first.raw) != messageID(second.raw) || messageID(first.raw) == "" {
				f.t.Error("the attempts have different Message-IDs")
			}
			f.is(id, envelope.StatusSent, "1 pending rate_limited", "2 sent")
		}},
		"cut, and the server stores a copy": {[]string{answerCut}, func(f *sendFixture) {
			f.reconciled(false)
			id := f.send()
			f.work()
			f.stores(f.smtp.next(f.t))
			f.is(id, envelope.StatusUnknown, "1 unknown lost")
			f.sweep()
			f.is(id, envelope.StatusSent, "1 unknown lost", "1 sent resolved")
		}},
		"cut, and no copy": {[]string{answerCut}, func(f *sendFixture) {
			f.reconciled(false)
			id := f.send()
			f.work()
			f.smtp.next(f.t)
			f.sweep()
			f.work()
			f.is(id, envelope.StatusUnknown, "1 unknown lost")
			if got := one[string](f.fixture, "SELECT last_result FROM dead_letters"); got != "not_found" {
				f.t.Errorf("the read found %q", got)
			}
		}},
		"cut, and a person does not see the copy": {[]string{answerCut}, func(f *sendFixture) {
			id := f.send()
			f.work()
			f.stores(f.smtp.next(f.t))
			f.notSent(id)
			f.work()
			f.is(id, envelope.StatusConflict, "1 unknown lost", "1 pending resolved", "2 conflict conflict")
		}},
		"dropped, and a person sends it again": {[]string{answerDrop, answerAccept}, func(f *sendFixture) {
			id := f.send()
			f.work()
			first := f.smtp.next(f.t)
			f.notSent(id)
			f.work()
			if second := f.smtp.next(f.t); messageID(first.raw) != messageID(second.raw) {
				f.t.Error("the attempts have different Message-IDs")
			}
			f.is(id, envelope.StatusSent, "1 unknown lost", "1 pending resolved", "2 sent")
		}},
		"dropped, and the rule may send it again": {[]string{answerDrop, answerAccept}, func(f *sendFixture) {
			f.reconciled(true)
			id := f.send()
			f.work()
			f.smtp.next(f.t)
			f.sweep()
			f.work()
			f.smtp.next(f.t)
			f.is(id, envelope.StatusSent, "1 unknown lost", "1 pending resolved", "2 sent")
		}},
		"the worker is killed, and the server stores a copy": {[]string{answerHold}, func(f *sendFixture) {
			f.reconciled(false)
			id := f.send()
			f.stores(f.killed())
			f.work()
			f.is(id, envelope.StatusUnknown, "1 unknown worker_lost")
			f.sweep()
			f.is(id, envelope.StatusSent, "1 unknown worker_lost", "1 sent resolved")
		}},
		"the worker is killed, and no copy": {[]string{answerHold}, func(f *sendFixture) {
			f.reconciled(false)
			id := f.send()
			f.killed()
			f.work()
			f.sweep()
			f.work()
			f.is(id, envelope.StatusUnknown, "1 unknown worker_lost")
		}},
	}
	for server, start := range map[string]func(*testing.T, ...string) *submission{"fake": startFake, "aiosmtpd": startAiosmtpd} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					user := server + "-" + strings.NewReplacer(" ", "", ",", "").Replace(name)
					test.run(newSendFixture(t, box, user, start(t, test.answers...)))
				})
			}
		})
	}
}

// messageID returns the Message-ID of a mail.
func messageID(raw string) string {
	for line := range strings.Lines(raw) {
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "Message-ID") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
