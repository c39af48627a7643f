package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-message"
	"github.com/emersion/go-msgauth/dkim"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// letter returns a mail of bob@example.com to the owner with the given changes, signed
// by a domain unless it is empty.
func letter(t *testing.T, signer string, changes ...string) []byte {
	t.Helper()
	text := strings.NewReplacer(changes...).Replace("Return-Path: <bob@example.com>\nFrom: Bob <bob@example.com>\nTo: " + owner +
		"\nSubject: hush Plans\nMessage-ID: <1@example.com>\nReferences: <0@example.com>\n\nhush body\n")
	return signed(t, strings.ReplaceAll(text, "\n", "\r\n"), signer)
}

// signed returns a mail with the signature of a domain unless it is empty.
func signed(t *testing.T, text, signer string) []byte {
	t.Helper()
	if signer == "" {
		return []byte(text)
	}
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(text), &dkim.SignOptions{Domain: signer, Selector: "s1", Signer: signingKey(signer), HeaderKeys: []string{"From", "Subject"}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// awayOf returns the arguments for answering a message.
func awayOf(at mailbox.State, raw []byte) object {
	day := time.Now().Truncate(24 * time.Hour)
	return object{
		"account": "work", "message": ref(at, "1@example.com", raw), "to": "bob@example.com", "subject": "Away", "text": "Back on Monday.\nAda",
		"since": day.Add(-24 * time.Hour).Format(time.RFC3339), "until": day.Add(72 * time.Hour).Format(time.RFC3339),
	}
}

// TestAway answers a sender once in a period, whatever call asks for it.
func TestAway(t *testing.T) {
	t.Parallel()
	server := (&smtpServer{}).start(t)
	f := newFixture(t, withSMTP(server.submitter(t, "starttls")), withKeys("example.com"))
	raw := letter(t, "example.com")
	args := awayOf(f.account.Deliver("INBOX", raw), raw)

	first := f.call(mail.ToolAway, args)
	again := f.call(mail.ToolAway, args)
	raw = letter(t, "example.com", "1@example.com", "2@example.com")
	other := awayOf(f.account.Deliver("INBOX", raw), raw)
	other["message"] = ref(f.account.Deliver("INBOX", raw), "2@example.com", raw)
	other["to"] = "Bob@example.com"
	second := f.call(mail.ToolAway, other)

	f.answer(first, source.KindDone, "")
	f.answer(again, source.KindConflict, source.CodeConflict)
	f.answer(second, source.KindConflict, source.CodeConflict)
	mails, to, _ := server.received()
	if len(mails) != 1 || len(to) != 1 || !strings.Contains(to[0], "<bob@example.com>") {
		t.Fatalf("%d mails to %v", len(mails), to)
	}
	e, err := message.Read(strings.NewReader(mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": "<" + owner + ">", "To": "<bob@example.com>", "Subject": "Away", "Auto-Submitted": "auto-replied", "In-Reply-To": "<1@example.com>",
		"References": "<0@example.com> <1@example.com>",
	} {
		if got := e.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if strings.Contains(mails[0], "hush") {
		t.Errorf("the answer repeats the message: %s", mails[0])
	}
	for to, want := range map[string]bool{"BOB@example.com": true, "eve@example.com": false} {
		if got := f.answer(f.call(mail.ToolSent, object{"account": "work", "to": to, "since": args["since"]}), source.KindDone, ""); got["found"] != want {
			t.Errorf("the answer to %s: found %v, want %v", to, got["found"], want)
		}
	}
	other["since"] = time.Now().Add(-time.Hour).Format(time.RFC3339)
	f.answer(f.call(mail.ToolAway, other), source.KindDone, "") // another period
}

// TestAwayWithATrustedHost believes Authentication-Results of the configured host.
func TestAwayWithATrustedHost(t *testing.T) {
	t.Parallel()
	for results, kind := range map[string]source.Kind{
		"mx.example.org; spf=pass smtp.mailfrom=bob@example.com; dmarc=pass header.from=example.com": source.KindDone,
		"mx.example.org; dmarc=fail header.from=example.com":                                         source.KindRefused,
		"mx.example.net; dmarc=pass header.from=example.com":                                         source.KindRefused,
	} {
		server := (&smtpServer{}).start(t)
		f := newFixture(t, withSMTP(server.submitter(t, "starttls")), withKeys(), func(cfg *mail.Config) {
			work := cfg.Accounts["work"]
			work.TrustedHost = "mx.example.org"
			cfg.Accounts["work"] = work
		})
		raw := append([]byte("Authentication-Results: "+results+"\r\n"), letter(t, "")...)
		if out := f.call(mail.ToolAway, awayOf(f.account.Deliver("INBOX", raw), raw)); out.Kind != kind {
			t.Errorf("%s: outcome = %s %q (%s), want %s", results, out.Kind, out.Code, out.Message, kind)
		}
	}
}

// TestAwayIsRefused checks that nothing is sent. Package autoreply has the senders who
// get no answer.
func TestAwayIsRefused(t *testing.T) {
	t.Parallel()
	const genuine = "example.com"
	for name, test := range map[string]struct {
		signer  string
		changes []string
		where   string
		flags   []string
		args    object
	}{
		"no signature":           {},
		"a signature of another": {signer: "evil.example"},
		"a null return path":     {signer: genuine, changes: []string{"Return-Path: <bob@example.com>", "Return-Path: <>"}},
		"a list":                 {signer: genuine, changes: []string{"References:", "List-Id: <a.example.com>\nReferences:"}},
		"a machine":              {signer: genuine, changes: []string{"References:", "Auto-Submitted: auto-generated\nReferences:"}},
		"a precedence":           {signer: genuine, changes: []string{"References:", "Precedence: bulk\nReferences:"}},
		"to others alone":        {signer: genuine, changes: []string{"To: " + owner, "To: team@example.org"}},
		"another recipient":      {signer: genuine, args: object{"to": "eve@example.com"}},
		"an answered message":    {signer: genuine, flags: []string{mailbox.FlagAnswered}},
		"junk":                   {signer: genuine, where: "Junk"},
		"phishing":               {signer: genuine, flags: []string{"$Phishing"}},
		"a period that is over":  {signer: genuine, args: object{"until": time.Now().Add(-time.Second).Format(time.RFC3339)}},
		"a period to come":       {signer: genuine, args: object{"since": time.Now().Add(time.Hour).Format(time.RFC3339)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := (&smtpServer{}).start(t)
			f := newFixture(t, withSMTP(server.submitter(t, "starttls")), withKeys(genuine, "evil.example"))
			if test.where == "" {
				test.where = "INBOX"
			}
			raw := letter(t, test.signer, test.changes...)
			args := awayOf(f.account.Deliver(test.where, raw, test.flags...), raw)
			for name, value := range test.args {
				args[name] = value
			}

			f.answer(f.call(mail.ToolAway, args), source.KindRefused, source.CodeRejected)

			if mails, _, _ := server.received(); len(mails) > 0 {
				t.Errorf("sent %q", mails)
			}
		})
	}
}

// TestAbsentOwnersDoNotAnswerEachOther has two accounts with an answer each: a message
// gets one answer, and the answer none.
func TestAbsentOwnersDoNotAnswerEachOther(t *testing.T) {
	t.Parallel()
	people := map[string]*fixture{}
	servers := map[string]*smtpServer{}
	for _, name := range []string{owner, "bob@example.com"} {
		servers[name] = (&smtpServer{}).start(t)
		people[name] = newFixture(t, withSMTP(servers[name].submitter(t, "starttls")), withKeys("example.com", "example.org"), func(cfg *mail.Config) {
			work := cfg.Accounts["work"]
			work.From = name
			cfg.Accounts["work"] = work
		})
	}
	sent, from, to := letter(t, "example.com"), "bob@example.com", owner
	var kinds []source.Kind
	for range 4 {
		f := people[to]
		args := awayOf(f.account.Deliver("INBOX", sent), sent)
		args["to"] = from
		kinds = append(kinds, f.call(mail.ToolAway, args).Kind)
		mails, _, _ := servers[to].received()
		if len(mails) == 0 {
			break
		}
		_, domain, _ := strings.Cut(to, "@")
		sent = append([]byte("Return-Path: <"+to+">\r\n"), signed(t, strings.TrimSuffix(mails[len(mails)-1], ".\r\n"), domain)...)
		from, to = to, from
	}
	if got := fmt.Sprint(kinds); got != "[done refused]" {
		t.Errorf("the answers are %s, want one and a refusal", got)
	}
}

// TestAwayWithServersOfOthers answers a message that Dovecot has, over aiosmtpd.
func TestAwayWithServersOfOthers(t *testing.T) {
	t.Parallel()
	at, dir := newAiosmtpd(t)
	server := dovecottest.New(t)
	m := overIMAP(server.Address, "ada", dovecottest.Password)
	raw := letter(t, "example.com")
	if err := server.Deliver("ada", "Sent", mailOf("0@example.com", "an older one")); err != nil { // makes the folder
		t.Fatal(err)
	}
	w, err := m.writer()
	if err != nil {
		t.Fatal(err)
	}
	location, err := w.Append(t.Context(), "INBOX", nil, raw)
	_ = w.Close() // it is stored
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, withKeys("example.com"), func(cfg *mail.Config) {
		cfg.Accounts["work"] = mail.Account{
			From: owner, Open: func(context.Context) (mailbox.Writer, error) { return m.writer() },
			Submitter: mail.Submitter{Submission: mail.Submission{Host: "127.0.0.1", Port: at.Port, TLS: "none"}, Guard: local},
		}
	})

	f.answer(f.call(mail.ToolAway, awayOf(mailbox.State{Location: location}, raw)), source.KindDone, "")
	f.answer(f.call(mail.ToolAway, awayOf(mailbox.State{Location: location}, raw)), source.KindConflict, source.CodeConflict)

	files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if sent, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(sent), "Auto-Submitted: auto-replied") {
		t.Errorf("the server has %s, %v", sent, err)
	}
}
