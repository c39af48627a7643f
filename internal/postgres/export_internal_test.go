package postgres

import "github.com/jackc/pgx/v5"

// HoldNotices keeps the pool of a transaction from sending notices by itself, until
// release is called.
func HoldNotices(tx pgx.Tx) (release func()) {
	s := noticesOf(tx).sender
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = true
	return func() { s.stop() }
}
