package postgres

import (
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// EventsChannel is notified after commits that recorded events. The payload is
	// notices, with commas between.
	EventsChannel = "countersign_events"
	// changeMark begins the notice of a tenant whose accepted actions changed, and
	// endMark what follows it if all of these have ended: their tails.
	changeMark, endMark = "!", "~"

	// noticeEvery is the least time between two notifications of a pool.
	noticeEvery = 4 * time.Millisecond
	// noticeTimeout bounds the sending of a notification.
	noticeTimeout = 5 * time.Second
	// maxPayload bounds a payload: PostgreSQL takes 7,999 bytes.
	maxPayload = 7900
)

// MaxEnded is the most ended actions that a notice names.
const MaxEnded = 64

// Tail is the last bytes of an action's id, which tell it from almost all others.
type Tail [4]byte

// TailOf returns the tail of an id.
func TailOf(id [16]byte) Tail { return Tail(id[12:]) }

// Notice is the change of a commit to a tenant's actions.
type Notice struct {
	Tenant string
	// Changed reports whether actions that were accepted earlier changed.
	Changed bool
	// Ended are the actions that changed, if all of them have ended and they are few;
	// nil otherwise.
	Ended []Tail
}

// add adds another notice of the same tenant.
func (n *Notice) add(other Notice) {
	switch {
	case !other.Changed:
	case !n.Changed:
		*n = other
	case n.Ended == nil || other.Ended == nil || len(n.Ended)+len(other.Ended) > MaxEnded:
		n.Ended = nil
	default:
		n.Ended = slices.Concat(n.Ended, other.Ended)
	}
}

// String returns the notice as payloads have it.
func (n *Notice) String() string {
	switch {
	case !n.Changed:
		return n.Tenant
	case n.Ended == nil:
		return changeMark + n.Tenant
	}
	text := []byte(changeMark + n.Tenant + "," + endMark)
	for _, t := range n.Ended {
		text = hex.AppendEncode(text, t[:])
	}
	return string(text)
}

// Notices returns the notices of a payload. It ignores unknown ones.
func Notices(payload string) []Notice {
	var all []Notice
	for text := range strings.SplitSeq(payload, ",") {
		if tails, ok := strings.CutPrefix(text, endMark); ok {
			if raw, err := hex.DecodeString(tails); err == nil && len(all) > 0 && len(raw)%len(Tail{}) == 0 {
				last := &all[len(all)-1]
				last.Ended = make([]Tail, 0, len(raw)/len(Tail{}))
				for tail := range slices.Chunk(raw, len(Tail{})) {
					last.Ended = append(last.Ended, Tail(tail))
				}
			}
			continue
		}
		tenant, changed := strings.CutPrefix(text, changeMark)
		all = append(all, Notice{Tenant: tenant, Changed: changed})
	}
	return all
}

// Announce has InTx notify the listeners of EventsChannel after the commit of tx. A
// notification that is lost, with the process for example, delays listeners until
// their next poll.
//
// It is sent after the commit, by another transaction and for all tenants of some
// milliseconds: PostgreSQL lets transactions with notifications commit only one
// after another.
func Announce(tx pgx.Tx, notice Notice) {
	if n := noticesOf(tx); n != nil {
		n.pending = append(n.pending, notice)
	}
}

// notices belong to a connection of a pool that Open returned.
type notices struct {
	// pending are the announcements of the current transaction.
	pending []Notice
	sender  *noticeSender
	// unreplicated counts the commits that stopped waiting for a standby.
	unreplicated atomic.Int64
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
	announced := n.pending
	n.pending = nil
	return func() { n.sender.add(announced) }
}

// noticeSender sends the notices of a pool.
type noticeSender struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	tenants map[string]*Notice
	sending bool
}

// use gives the sender the pool that it sends with.
func (s *noticeSender) use(pool *pgxpool.Pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = pool
}

func (s *noticeSender) add(announced []Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, n := range announced {
		changed = changed || n.Changed
		if known := s.tenants[n.Tenant]; known != nil {
			known.add(n)
		} else {
			s.tenants[n.Tenant] = &n
		}
	}
	if !s.sending && s.pool != nil {
		s.sending = true
		wait := noticeEvery
		if changed {
			wait = 0
		}
		go s.send(wait) // ends by itself when no tenant is left; after the pool's Close its statement fails
	}
}

// send notifies of the tenants that were added, until none is left. It first waits:
// the notification that an action may be due, which follows most proposals, takes
// their notices along.
func (s *noticeSender) send(wait time.Duration) {
	for {
		time.Sleep(wait)
		payloads := s.take()
		if payloads == nil && s.stop() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
		_, err := s.pool.Exec(ctx, notifySQL, slices.Repeat([]string{EventsChannel}, len(payloads)), payloads)
		cancel()
		if wait = noticeEvery; err != nil {
			wait = noticeEvery * 25 // listeners look by themselves
		}
	}
}

// stop ends the sender if no tenant was added.
func (s *noticeSender) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = len(s.tenants) > 0
	return !s.sending
}

// take returns the payloads of the tenants that were added, or nil.
func (s *noticeSender) take() (payloads []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, n := range s.tenants {
		text := n.String()
		if b.Len() > 0 && b.Len()+1+len(text) > maxPayload {
			payloads = append(payloads, b.String())
			b.Reset()
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text)
	}
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	clear(s.tenants)
	return payloads
}

// notifySQL notifies of payloads. A notification gives its transaction an id, and with
// it a commit that would wait for the disk.
const notifySQL = `SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify(c, p) FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) u (c, p)`

// Notify sends a notification in a transaction of its own, with the notices that the
// pool has to send. It takes at most some seconds.
func Notify(ctx context.Context, db *pgxpool.Pool, channel, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	conn, err := db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	channels, payloads := []string{channel}, []string{payload}
	if n, ok := conn.Conn().PgConn().CustomData()[noticesKey].(*notices); ok {
		for _, notices := range n.sender.take() {
			channels, payloads = append(channels, EventsChannel), append(payloads, notices)
		}
	}
	_, err = conn.Exec(ctx, notifySQL, channels, payloads)
	return err
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
