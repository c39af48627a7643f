package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// CacheFor is how long a token that was found is taken as valid without
// looking again, and so how long a revocation may take to have an effect.
const CacheFor = 10 * time.Second

// FlushEvery is how often Keep writes when tokens were used last.
const FlushEvery = 30 * time.Second

const (
	// maxCached bounds the tokens that are remembered at once.
	maxCached = 10_000
	// maxFlushed bounds the tokens that one statement writes.
	maxFlushed = 1000
	// flushTimeout bounds how long the last Flush may take.
	flushTimeout = 5 * time.Second
)

// Authenticator finds out who shows a token, one of Countersign's own or one
// that an issuer of OpenID Connect signed, and remembers it for CacheFor.
// Tokens that are not valid are never remembered. It is safe for concurrent
// use.
type Authenticator struct {
	db      postgres.Begins
	issuers *issuers

	mu    sync.Mutex
	known map[shown]remembered
	// used is when tokens and operators were seen last, as far as it is not
	// written yet.
	used map[uuid.UUID]time.Time
}

// shown is what somebody showed: the hash of its text, and whether as a session. A
// session's secret is never taken for a token, also while it is remembered.
type shown struct {
	hash    [sha256.Size]byte
	session bool
}

type remembered struct {
	who   Principal
	until time.Time
}

// NewAuthenticator returns an Authenticator that remembers nobody yet. Issuers are
// asked on the public internet and in some networks.
func NewAuthenticator(db postgres.Begins, issuerNetworks ...netip.Prefix) *Authenticator {
	return &Authenticator{
		db: db, issuers: newIssuers(issuerNetworks), known: make(map[shown]remembered), used: make(map[uuid.UUID]time.Time),
	}
}

// Authenticate returns who shows a token. The error is ErrToken for one that
// is not valid, fault.Denied for a person who is known to its issuer and may
// do nothing here, and fault.Busy if the issuer does not answer; any other
// means that the answer is unknown.
func (a *Authenticator) Authenticate(ctx context.Context, text string, now time.Time) (Principal, error) {
	return a.authenticate(ctx, text, now, shown{hash: sha256.Sum256([]byte(text))}, a.lookUp)
}

// AuthenticateSession returns who shows the secret of a browser session. The
// error is ErrSession for a session that is over; any other says that nobody
// could find out.
func (a *Authenticator) AuthenticateSession(ctx context.Context, text string, now time.Time) (Principal, error) {
	who, err := a.authenticate(ctx, text, now, shown{sha256.Sum256([]byte(text)), true}, a.lookUpSession)
	if errors.Is(err, ErrToken) {
		err = ErrSession
	}
	return who, err
}

// finder finds out who shows a text, and until when that is valid; the zero time
// is until it is revoked.
type finder func(ctx context.Context, text string, now time.Time) (who Principal, until time.Time, err error)

func (a *Authenticator) authenticate(ctx context.Context, text string, now time.Time, as shown, find finder) (Principal, error) {
	a.mu.Lock()
	found, ok := a.known[as]
	if ok && now.Before(found.until) {
		a.markUsed(found.who, now)
	}
	a.mu.Unlock()
	if ok && now.Before(found.until) {
		return found.who, nil
	}
	who, until, err := find(ctx, text, now)
	switch {
	case errors.Is(err, ErrToken):
		return Principal{}, ErrToken
	case errors.Is(err, fault.Denied):
		return Principal{}, err
	case err != nil:
		return Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	if most := now.Add(CacheFor); until.IsZero() || until.After(most) {
		until = most
	}
	a.remember(as, remembered{who, until}, now)
	return who, nil
}

// lookUp is the finder for tokens.
func (a *Authenticator) lookUp(ctx context.Context, text string, now time.Time) (who Principal, until time.Time, err error) {
	if !strings.HasPrefix(text, tokenPrefix) {
		return a.authenticateSigned(ctx, text, now)
	}
	token, err := parseToken(text)
	if err != nil {
		return who, until, err
	}
	hash := token.hash()
	err = postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (err error) {
		who, until, err = lookUp(ctx, tx, hash[:])
		return err
	})
	return who, until, err
}

// Forget has the next look at what a token, a person or a browser session shows
// ask again. It makes a revocation effective at once where it was made.
func (a *Authenticator) Forget(id TokenID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for as, r := range a.known {
		if r.who.Token == id || r.who.Person() == uuid.UUID(id) || r.who.Operator == uuid.UUID(id) || r.who.Browser.ID == uuid.UUID(id) {
			delete(a.known, as)
		}
	}
}

func (a *Authenticator) remember(as shown, r remembered, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxCached {
		for old, r := range a.known {
			if !now.Before(r.until) {
				delete(a.known, old)
			}
		}
	}
	if len(a.known) >= maxCached {
		clear(a.known) // more tokens at once than fit: each is looked up again
	}
	a.known[as] = r
	a.markUsed(r.who, now)
}

// markUsed keeps when a token was used, and its person seen. Those beyond
// 2*maxCached are skipped. The mutex is held.
func (a *Authenticator) markUsed(who Principal, now time.Time) {
	for _, id := range []uuid.UUID{uuid.UUID(who.Token), who.Operator} {
		if _, ok := a.used[id]; id != uuid.Nil && (ok || len(a.used) < 2*maxCached) {
			a.used[id] = now
		}
	}
}

// Flush writes when tokens were used last. What could not be written is kept
// for the next time.
func (a *Authenticator) Flush(ctx context.Context) error {
	a.mu.Lock()
	used := a.used
	a.used = make(map[uuid.UUID]time.Time)
	a.mu.Unlock()
	var ids []uuid.UUID
	var ats []time.Time
	for id, at := range used {
		ids, ats = append(ids, id), append(ats, at)
	}
	for len(ids) > 0 {
		n := min(len(ids), maxFlushed)
		err := postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) error { return recordUses(ctx, tx, ids[:n], ats[:n]) })
		if err != nil {
			a.keep(ids, ats)
			return fmt.Errorf("record when tokens were used: %w", err)
		}
		ids, ats = ids[n:], ats[n:]
	}
	return nil
}

// keep puts back what could not be written, unless there is newer.
func (a *Authenticator) keep(ids []uuid.UUID, ats []time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, id := range ids {
		if a.used[id].Before(ats[i]) && len(a.used) < 2*maxCached {
			a.used[id] = ats[i]
		}
	}
}

// Keep flushes every FlushEvery until ctx ends, and once more then. It calls
// failed with each error.
func (a *Authenticator) Keep(ctx context.Context, failed func(error)) {
	every := time.NewTicker(FlushEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if err := a.Flush(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			if err := a.Flush(last); err != nil {
				failed(err)
			}
			return
		}
	}
}
