package mcpmail_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
	"github.com/countersign-dev/countersign/internal/triage/mcpmailtest"
)

// config configures a reader with the generic profile.
func config(t testing.TB, s *mcpmailtest.Server) mcpmail.Config {
	t.Helper()
	return mcpmail.Config{
		Name: "test", URL: s.URL, Profile: profile(t, mcpmail.Generic, nil), Networks: safehttp.Loopback(), MaxSize: mailboxtest.MaxSize,
		Interval: time.Hour, Quota: quota.New(quota.Provider{}), Timeout: 20 * time.Second,
	}
}

func profile(t testing.TB, server string, names map[string]string) mcpmail.Profile {
	t.Helper()
	p, err := mcpmail.ProfileOf(server, names)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB, c mcpmail.Config) *mcpmail.Reader {
	t.Helper()
	r, err := mcpmail.NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// accountOf returns an account for the contract tests. A server without a tool
// for changes only reports new messages, so the tests of flags, deletions,
// moves and new ids do not apply. MCP has no notifications, so the tests poll.
func accountOf(t *testing.T, kind mcpmailtest.Kind) mailboxtest.Account {
	s := mcpmailtest.New(t, kind)
	a := mailboxtest.Account{
		Inbox: "INBOX", Other: "Archive", Polls: true, Keywords: true, Built: kind.Built,
		Reader:  func(t *testing.T) mailbox.Reader { return open(t, config(t, s)) },
		Deliver: func(_ *testing.T, folder string, raw []byte) { s.Deliver(folder, raw) },
	}
	if !kind.NoChanges {
		a.SetFlag = func(_ *testing.T, folder, messageID, flag string) { s.Flag(folder, messageID, flag) }
		a.Move = func(_ *testing.T, from, to, messageID string) { s.Move(from, to, messageID) }
		a.Remove = func(_ *testing.T, folder, messageID string) { s.Move(folder, "", messageID) }
		a.Void = func(_ *testing.T, folder string) { s.Void(folder) }
	}
	return a
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]mcpmailtest.Kind{
		"a server with cursors":           {},
		"a server without":                {NoChanges: true},
		"a server that lists no times":    {NoChanges: true, NoTimes: true},
		"a server that gives fields only": {NoChanges: true, NoTimes: true, Built: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mailboxtest.TestReader(t, func(t *testing.T) mailboxtest.Account { return accountOf(t, kind) })
		})
	}
}

func TestWaitEndsWithItsInterval(t *testing.T) {
	t.Parallel()
	c := config(t, mcpmailtest.New(t, mcpmailtest.Kind{}))
	c.Interval = time.Millisecond
	if err := open(t, c).Wait(context.Background(), []string{"INBOX"}); err != nil {
		t.Error(err)
	}
}
