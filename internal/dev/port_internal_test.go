package dev

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestTheNotesServerKeepsItsPort(t *testing.T) {
	t.Parallel()
	e := &Environment{dir: t.TempDir()}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()

	if got := e.notesAddress(t.Context()); got != anyPort {
		t.Errorf("the first time it listens at %s, want any port", got)
	}
	if err := e.keepNotesAddress("http://" + at + "/mcp"); err != nil {
		t.Fatal(err)
	}
	if got := e.notesAddress(t.Context()); got != anyPort {
		t.Errorf("while somebody listens at %s it is to listen at %s", at, got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := e.notesAddress(t.Context()); got != at {
		t.Errorf("it is to listen at %s, want %s as before", got, at)
	}
	for _, text := range []string{"", "x", "0.0.0.0:80", "192.0.2.1:8080", "localhost:80"} {
		if err := os.WriteFile(filepath.Join(e.dir, notesAddressFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := e.notesAddress(t.Context()); got != anyPort {
			t.Errorf("with %q in the file it listens at %s", text, got)
		}
	}
}
