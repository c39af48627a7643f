package mail_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-message"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// invited returns a mail with an invitation of bob@example.com to an address, with
// the given changes, and signed by a domain unless it is empty.
func invited(t *testing.T, to, signer string, changes ...string) []byte {
	t.Helper()
	text := strings.NewReplacer(changes...).Replace("From: Bob <bob@example.com>\nTo: " + to + "\nSubject: hush Plans\nMessage-ID: <1@example.com>\n" +
		"MIME-Version: 1.0\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\n\n" +
		"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nMETHOD:REQUEST\nBEGIN:VEVENT\nUID:4@example.com\nSEQUENCE:2\nDTSTART:" +
		time.Now().Add(48*time.Hour).UTC().Format("20060102T150405Z") + "\nORGANIZER;CN=Bob:mailto:bob@example.com\nATTENDEE;CN=Ada;RSVP=TRUE:mailto:" + to + "\nEND:VEVENT\nEND:VCALENDAR\n")
	return signed(t, strings.ReplaceAll(text, "\n", "\r\n"), signer)
}

func withKeys(domains ...string) func(*mail.Config) {
	return func(cfg *mail.Config) { cfg.Resolver = keys(domains...) }
}

// answered returns the recipients and the calendar of a mail that answers an
// invitation.
func answered(t *testing.T, raw string) (head message.Header, calendar string) {
	t.Helper()
	e, err := message.Read(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	err = e.Walk(func(_ []int, part *message.Entity, err error) error {
		kind, params, _ := part.Header.ContentType()
		if err == nil && kind == "text/calendar" && params["method"] == "REPLY" {
			var text []byte
			text, err = io.ReadAll(part.Body)
			calendar += string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.Header, calendar
}

// TestRSVP answers invitations to both addresses of an owner, once each.
func TestRSVP(t *testing.T) {
	t.Parallel()
	server := (&smtpServer{}).start(t)
	f := newFixture(t, withSMTP(server.submitter(t, "starttls")), withKeys("example.com", "mail.example.com"), func(cfg *mail.Config) {
		work := cfg.Accounts["work"]
		work.Addresses = []string{"ada.l@example.net"}
		cfg.Accounts["work"] = work
	})
	for i, test := range []struct{ to, signer, answer, status string }{
		{owner, "example.com", "accepted", "ACCEPTED"},
		{"ada.l@example.net", "mail.example.com", "tentative", "TENTATIVE"},
		{owner, "example.com", "declined", "DECLINED"},
	} {
		raw := invited(t, test.to, test.signer)
		args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "answer": test.answer}
		key := "key " + test.answer

		first := f.attempt(1, key, mail.ToolRSVP, args)
		again := f.attempt(1, key, mail.ToolRSVP, args)

		f.answer(first, source.KindDone, "")
		f.answer(again, source.KindConflict, source.CodeConflict)
		mails, to, _ := server.received()
		if len(mails) != i+1 || len(to) != i+1 || !strings.Contains(to[i], "<bob@example.com>") {
			t.Fatalf("%d mails to %v", len(mails), to)
		}
		head, calendar := answered(t, mails[i])
		for name, want := range map[string]string{
			"From": "<" + test.to + ">", "To": "<bob@example.com>", "In-Reply-To": "<1@example.com>", "Message-Id": "<" + mail.DraftID(key, "work", owner) + ">",
			"Subject": strings.ToUpper(test.answer[:1]) + test.answer[1:] + ": hush Plans",
		} {
			if got := head.Get(name); got != want {
				t.Errorf("%s: %s = %q, want %q", test.answer, name, got, want)
			}
		}
		lines := strings.Split(calendar, "\r\n")
		for _, want := range []string{"METHOD:REPLY", "UID:4@example.com", "SEQUENCE:2", "ORGANIZER;CN=Bob:mailto:bob@example.com", "ATTENDEE;CN=Ada;PARTSTAT=" + test.status + ":mailto:" + test.to} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: the answer lacks %q:\n%s", test.answer, want, calendar)
			}
		}
		if result := f.answer(f.call(mail.ToolSent, object{"account": "work", "key": key}), source.KindDone, ""); result["found"] != true {
			t.Errorf("%s: a reconcile rule does not find it", test.answer)
		}
	}
}

// TestRSVPIsRefused checks that nothing is sent. Package invitation has the
// refusals of calendars.
func TestRSVPIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signer  string
		changes []string
		where   string
		flags   []string
		broken  bool
		kind    source.Kind
		code    string
	}{
		"no signature":             {},
		"a signature of another":   {signer: "evil.example"},
		"a key that is gone":       {signer: "gone.example.com"},
		"junk":                     {signer: "example.com", where: "Junk"},
		"flagged as phishing":      {signer: "example.com", flags: []string{"$Phishing"}},
		"another organizer":        {signer: "example.com", changes: []string{"mailto:bob@", "mailto:eve@"}},
		"another attendee":         {signer: "example.com", changes: []string{"mailto:ada@", "mailto:eve@"}},
		"an invitation to another": {signer: "example.com", changes: []string{"METHOD:REQUEST", "METHOD:CANCEL"}},
		"no DNS now":               {signer: "example.com", broken: true, kind: source.KindRetry, code: source.CodeThirdParty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := (&smtpServer{}).start(t)
			zone := keys("example.com", "evil.example")
			zone.broken = test.broken
			f := newFixture(t, withSMTP(server.submitter(t, "starttls")), func(cfg *mail.Config) { cfg.Resolver = zone })
			if test.where == "" {
				test.where = "INBOX"
			}
			if test.kind == "" {
				test.kind, test.code = source.KindRefused, source.CodeRejected
			}
			raw := invited(t, owner, test.signer, test.changes...)
			args := object{"account": "work", "message": ref(f.account.Deliver(test.where, raw, test.flags...), "1@example.com", raw), "answer": "accepted"}

			f.answer(f.call(mail.ToolRSVP, args), test.kind, test.code)

			if mails, _, _ := server.received(); len(mails) > 0 {
				t.Errorf("sent %q", mails)
			}
		})
	}
	t.Run("changed after signing", func(t *testing.T) {
		t.Parallel()
		server := (&smtpServer{}).start(t)
		f := newFixture(t, withSMTP(server.submitter(t, "starttls")), withKeys("example.com"))
		raw := bytes.Replace(invited(t, owner, "example.com"), []byte("UID:4"), []byte("UID:5"), 1)
		args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "answer": "accepted"}

		f.answer(f.call(mail.ToolRSVP, args), source.KindRefused, source.CodeRejected)
	})
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, withKeys("example.com"))
		raw := invited(t, owner, "example.com")
		args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "answer": "accepted"}

		f.answer(f.call(mail.ToolRSVP, args), source.KindRefused, source.CodeUnsupported)
	})
}

// TestRSVPWithServersOfOthers answers an invitation that Dovecot has, over aiosmtpd.
func TestRSVPWithServersOfOthers(t *testing.T) {
	t.Parallel()
	at, dir := newAiosmtpd(t)
	server := dovecottest.New(t)
	m := overIMAP(server.Address, "ada", dovecottest.Password)
	raw := invited(t, owner, "example.com")
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
	args := object{"account": "work", "message": ref(mailbox.State{Location: location}, "1@example.com", raw), "answer": "accepted"}

	f.answer(f.attempt(1, "key", mail.ToolRSVP, args), source.KindDone, "")
	f.answer(f.attempt(1, "key", mail.ToolRSVP, args), source.KindConflict, source.CodeConflict)

	files, err := filepath.Glob(filepath.Join(dir, "new", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	sent, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, calendar := answered(t, string(sent)); !strings.Contains(calendar, "PARTSTAT=ACCEPTED") {
		t.Errorf("the server has %s", sent)
	}
	if program, err := exec.LookPath("/usr/bin/python3"); err == nil { // a reader of another author
		out, err := exec.CommandContext(t.Context(), program, "-c",
			"import email, sys; m = email.message_from_bytes(open(sys.argv[1], 'rb').read()); print([p.get_content_type() for p in m.walk()], m.defects)", files[0]).CombinedOutput()
		if want := "['multipart/alternative', 'text/plain', 'text/calendar'] []\n"; err != nil || string(out) != want {
			t.Errorf("python reads %s (%v), want %s", out, err, want)
		}
	}
}
