package dev

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestTriageOfTheEnvironmentReadsAccountsOfTheUser adds two accounts to the sample
// mailbox: one of files in a folder that a variable names, and one of an IMAP server
// without TLS on this machine, with a stored password.
func TestTriageOfTheEnvironmentReadsAccountsOfTheUser(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, "mine", part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	go func() { // ends with the listener
		conn, err := server.Accept()
		if err == nil {
			close(reached)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = server.Close() })
	e, err := Open(ctx, Config{
		DatabaseURL: dbtest.URL(t), Dir: t.TempDir(), Listen: "127.0.0.1:0", Mailbox: true,
		Getenv: func(name string) string { return map[string]string{"COUNTERSIGN_MAILDIRS": dir}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	admin, err := e.Client(e.Tokens().Admin)
	if err != nil {
		t.Fatal(err)
	}

	for name, in := range map[string]wire.TriageAccountInput{
		"mine": {Kind: "maildir", Connection: wire.TriageConnection{Path: filepath.Join(dir, "mine")}},
		"plain": {Kind: "imap", Secret: "password", Connection: wire.TriageConnection{
			Host: "127.0.0.1", Port: server.Addr().(*net.TCPAddr).Port, User: "ann", Security: "plain",
		}},
	} {
		if _, err := admin.PutTriageAccount(ctx, name, in, ""); err != nil {
			t.Fatal(err)
		}
	}

	<-reached
	for {
		states, err := admin.TriageStatus(ctx, "mine")
		if err != nil {
			t.Fatal(err)
		}
		if s := states[0]; s.LastEndedAt != nil {
			if s.LastError != "" {
				t.Errorf("the account of files: %s", s.LastError)
			}
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("the account of files is not read")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
