package mcpmail_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
)

// TestServerFromNPM reads a Dovecot through the npm package mcp-mail-server,
// which is not part of this project. Some contract tests do not apply: older
// mail (it lists from a day on and has no end), flags, moves and deletions (it
// has no cursors), several folders, and Message-IDs, which it does not return.
func TestServerFromNPM(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	script, err := filepath.Abs(filepath.Join("testdata", "npm", "node_modules", "mcp-mail-server", "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm")
	}
	dovecot := dovecottest.New(t)
	host, port, err := net.SplitHostPort(dovecot.Address)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, mcpmail.Config{
		Name: "npm", Profile: profile(t, "mcp-mail-server", nil), Interval: time.Hour, Quota: quota.New(quota.Provider{}),
		Command: []string{
			"env", "IMAP_HOST=" + host, "IMAP_PORT=" + port, "IMAP_SECURE=false", "SMTP_HOST=127.0.0.1", "SMTP_PORT=1", "SMTP_SECURE=false",
			"EMAIL_USER=ann", "EMAIL_PASS=" + dovecottest.Password, node, script,
		},
	})
	deliver(t, dovecot.Address, string(mailboxtest.Message(1, "hello")))
	end, err := r.End(t.Context(), "INBOX")
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, dovecot.Address, string(mailboxtest.Message(2, "hello")))

	got, err := changes(t, r, end)
	if err != nil || len(got.New) != 1 || got.More {
		t.Fatalf("after the end: %+v, %v; want the second message", got, err)
	}
	if again, err := changes(t, r, got.Next); err != nil || len(again.New) != 0 {
		t.Errorf("nothing came: %+v, %v", again, err)
	}
	all, err := changes(t, r, nil)
	if err != nil || len(all.New) != 2 {
		t.Fatalf("from the beginning: %+v, %v; want both", all, err)
	}
	var subjects []string
	err = r.Read(t.Context(), append(all.New, mailbox.Item{Location: mailbox.Location{Folder: "INBOX", Key: "4711"}}), func(item mailbox.Item, raw []byte, err error) error {
		m := message.Parse(raw)
		subjects = append(subjects, m.Subject)
		if item.Key == "4711" {
			if raw != nil || err == nil {
				t.Errorf("a message that is not there: %q, %v", raw, err)
			}
			return nil
		}
		if err != nil || !item.Built || item.Received.IsZero() || len(m.From) != 1 || m.From[0].Addr != "sender@mailbox.test" || !strings.Contains(m.Text, "From the top: hello") {
			t.Errorf("read %+v: %q, %v", item, raw, err)
		}
		return err
	})
	if slices.Sort(subjects); err != nil || !slices.Equal(subjects, []string{"", "number 1", "number 2"}) {
		t.Errorf("subjects are %q, %v", subjects, err)
	}
	if later, err := changes(t, r, nil); err != nil || slices.ContainsFunc(later.New, func(it mailbox.Item) bool { return mailbox.HasFlag(it.Flags, mailbox.FlagSeen) }) {
		t.Errorf("reading marked a message as read: %+v, %v", later.New, err)
	}
}

// deliver appends a message to the INBOX of ann.
func deliver(t *testing.T, address, raw string) {
	t.Helper()
	client, err := imapclient.DialInsecure(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Login("ann", dovecottest.Password).Wait(); err != nil {
		t.Fatal(err)
	}
	command := client.Append("INBOX", int64(len(raw)), nil)
	_, err = command.Write([]byte(raw))
	if err == nil {
		err = command.Close()
	}
	if err == nil {
		_, err = command.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}
