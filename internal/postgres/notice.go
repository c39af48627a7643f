package postgres

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// EventsChannel is notified after commits that recorded events. The payload
	// is the tenants' ids, with commas between, each behind a Change if actions
	// that were accepted earlier changed.
	EventsChannel = "countersign_events"
	// Change begins a tenant's id in a payload.
	Change = "!"

	// noticeEvery is the least time between two notifications of a pool.
	noticeEvery = 4 * time.Millisecond
	// noticeTimeout bounds the sending of a notification.
	noticeTimeout = 5 * time.Second
	// tenantsAtOnce bounds the tenants of one payload: PostgreSQL bounds a payload
	// to 8,000 bytes.
	tenantsAtOnce = 200
)

// Announce has InTx notify the listeners of EventsChannel after the commit of tx
// that a tenant has new events, and whether accepted actions changed with them. A
// notification that is lost, with the process for example, delays listeners until
// their next poll.
//
// It is sent after the commit, by another transaction and for all tenants of some
// milliseconds: PostgreSQL lets transactions with notifications commit only one
// after another.
func Announce(tx pgx.Tx, tenant string, changed bool) {
	if n := noticesOf(tx); n != nil {
		if changed {
			tenant = Change + tenant
		}
		n.pending = append(n.pending, tenant)
	}
}

// notices belong to a connection of a pool that Open returned.
type notices struct {
	// pending are the tenants that the current transaction announced.
	pending []string
	sender  *noticeSender
}

// noticesKey is the key of a connection's notices in its custom data.
const noticesKey = "countersign notices"

func noticesOf(tx pgx.Tx) *notices {
	if tx == nil || tx.Conn() == nil {
		return nil
	}
	n, _ := tx.Conn().PgConn().CustomData()[noticesKey].(*notices)
	return n
}

// take returns a function that sends the announcements of the transaction, and
// clears them. It is called before the commit, after which the connection may be
// in use by another transaction.
func (n *notices) take() (send func()) {
	if n == nil || len(n.pending) == 0 {
		return func() {}
	}
	tenants := n.pending
	n.pending = nil
	return func() { n.sender.add(tenants) }
}

// noticeSender sends the notices of a pool.
type noticeSender struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	tenants map[string]struct{}
	sending bool
}

// use gives the sender the pool that it sends with.
func (s *noticeSender) use(pool *pgxpool.Pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = pool
}

func (s *noticeSender) add(tenants []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tenants {
		s.tenants[t] = struct{}{}
	}
	if !s.sending && s.pool != nil {
		s.sending = true
		go s.send() // ends by itself when no tenant is left; after the pool's Close its statement fails
	}
}

// send notifies of the tenants that were added, until none is left.
func (s *noticeSender) send() {
	for {
		payloads := s.take()
		if payloads == nil {
			return
		}
		err := Notify(context.Background(), s.pool, EventsChannel, payloads...)
		if err == nil {
			time.Sleep(noticeEvery)
		} else {
			time.Sleep(noticeEvery * 25) // listeners poll by themselves
		}
	}
}

// Notify sends notifications in a transaction of its own. It takes at most some
// seconds.
func Notify(ctx context.Context, db *pgxpool.Pool, channel string, payloads ...string) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	// A notification gives its transaction an id, and with it a commit that would wait for the disk.
	_, err := db.Exec(ctx, `SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($1, p) FROM pg_catalog.unnest($2::text[]) u (p)`,
		channel, payloads)
	return err
}

// take returns the next payloads; nil if there are none, and then the next add
// starts send again.
func (s *noticeSender) take() (payloads []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	n := 0
	for t := range s.tenants {
		if n++; b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t)
		if n%tenantsAtOnce == 0 {
			payloads = append(payloads, b.String())
			b.Reset()
		}
	}
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	clear(s.tenants)
	s.sending = payloads != nil
	return payloads
}

// ListenEvents calls notified for each notification of EventsChannel, as Listen
// does.
func ListenEvents(db *pgxpool.Pool, log *slog.Logger) func(ctx context.Context, notified func(tenants string)) {
	return func(ctx context.Context, notified func(tenants string)) {
		Listen(ctx, db, []string{EventsChannel}, func(_, payload string) { notified(payload) }, log)
	}
}

// Listen calls notified for each notification of some channels, on a connection of
// its own that it opens again whenever it is lost, until ctx ends. Whenever the
// connection is new, it calls notified with an empty channel: notifications may
// have been missed.
func Listen(ctx context.Context, db *pgxpool.Pool, channels []string, notified func(channel, payload string), log *slog.Logger) {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	_ = backoff.RetryNotify(func() error {
		return listenOnce(ctx, db, channels, func(channel, payload string) {
			pause.Reset()
			notified(channel, payload)
		})
	}, backoff.WithContext(pause, ctx), func(err error, after time.Duration) {
		log.WarnContext(ctx, "not notified by the database", slog.Duration("retry_in", after), slog.Any("error", err))
	})
}

// listenOnce listens until the connection is lost or ctx ends.
func listenOnce(ctx context.Context, db *pgxpool.Pool, channels []string, notified func(channel, payload string)) error {
	conn, err := pgx.ConnectConfig(ctx, db.Config().ConnConfig.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, channel := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
	}
	for notified("", ""); ; {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		notified(n.Channel, n.Payload)
	}
}
