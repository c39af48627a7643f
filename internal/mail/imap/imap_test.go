package imap

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// TestDovecot tests the contract on a server with CONDSTORE and MOVE.
func TestDovecot(t *testing.T) {
	t.Parallel()

	s, _ := newDovecot(t)
	t.Run("reader", func(t *testing.T) { mailboxtest.TestReader(t, s.account) })
	t.Run("writer", func(t *testing.T) { mailboxtest.TestWriter(t, s.account) })
}

// TestMemory tests the contract on a server without CONDSTORE.
func TestMemory(t *testing.T) {
	t.Parallel()

	s := fullMemory(t)
	t.Run("reader", func(t *testing.T) { mailboxtest.TestReader(t, s.account) })
	t.Run("writer", func(t *testing.T) { mailboxtest.TestWriter(t, s.account) })
}
