package postgres

import "github.com/jackc/pgx/v5"

// HoldNotices keeps the pool of a transaction from sending notices by itself.
func HoldNotices(tx pgx.Tx) {
	s := noticesOf(tx).sender
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = true
}
