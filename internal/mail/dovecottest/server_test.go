package dovecottest

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

// TestRestart checks that a killed server restarts at the same address.
func TestRestart(t *testing.T) {
	t.Parallel()

	s := New(t)
	if err := s.Deliver("alice", "INBOX", []byte("Subject: kept\r\n\r\ntext\r\n")); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if conn, err := net.Dial("tcp", s.Address); err == nil {
		conn.Close()
		t.Error("a killed server answers")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("a LOGIN alice " + Password + "\r\nb STATUS INBOX (MESSAGES)\r\nc LOGOUT\r\n")); err != nil {
		t.Fatal(err)
	}
	found := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		found = found || strings.Contains(lines.Text(), "MESSAGES 1")
	}
	if !found {
		t.Error("the message is not there after the restart")
	}
}
