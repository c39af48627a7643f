package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// CacheFor is how long a valid token is cached, and so the maximum delay of a
// revocation.
const CacheFor = 10 * time.Second

// flushEvery is the interval at which Keep writes the last uses of tokens.
const flushEvery = 30 * time.Second

const (
	// maxCached bounds the cached tokens.
	maxCached = 10_000
	// maxFlushed bounds the tokens per statement of Flush.
	maxFlushed = 1000
	// flushTimeout bounds the last Flush.
	flushTimeout = 5 * time.Second
	// lookUpTimeout bounds a lookup, which uses the context of no caller.
	lookUpTimeout = 30 * time.Second
)

// Authenticator authenticates tokens, Countersign's own or those signed by an
// OpenID Connect issuer, and caches the result for CacheFor. Invalid tokens are
// not cached. Concurrent callers with one token share one lookup. It is safe for
// concurrent use.
type Authenticator struct {
	db      postgres.Begins
	issuers *issuers

	mu    sync.Mutex
	known map[shown]remembered
	// forgotten counts the calls of Forget. A lookup that began before one is not
	// cached, and later callers do not join it.
	forgotten int
	lookups   singleflight.Group
	// used holds unwritten last uses of tokens and operators.
	used map[uuid.UUID]time.Time
}

// shown identifies a credential: the hash of its text, and whether it was used
// as a session. The secret of a session is never accepted as a token, also from
// the cache.
type shown struct {
	hash    [sha256.Size]byte
	session bool
}

type remembered struct {
	who   Principal
	until time.Time
}

// NewAuthenticator returns an Authenticator with an empty cache. Issuers are
// allowed on the public internet and in issuerNetworks.
func NewAuthenticator(db postgres.Begins, issuerNetworks ...netip.Prefix) *Authenticator {
	return &Authenticator{
		db: db, issuers: newIssuers(issuerNetworks), known: make(map[shown]remembered), used: make(map[uuid.UUID]time.Time),
	}
}

// Authenticate returns the holder of a token. The error is ErrToken for an
// invalid token, fault.Denied for a person whom the issuer vouches for but who
// has no rights here, and fault.Busy if the issuer does not answer. Any other
// error means that the token could not be checked.
func (a *Authenticator) Authenticate(ctx context.Context, text string, now time.Time) (Principal, error) {
	return a.authenticate(ctx, text, now, shown{hash: sha256.Sum256([]byte(text))}, a.lookUp)
}

// AuthenticateSession returns the holder of a browser session's secret. The
// error is ErrSession for a session that has ended. Any other error means that
// it could not be checked.
func (a *Authenticator) AuthenticateSession(ctx context.Context, text string, now time.Time) (Principal, error) {
	who, err := a.authenticate(ctx, text, now, shown{sha256.Sum256([]byte(text)), true}, a.lookUpSession)
	if errors.Is(err, ErrToken) {
		err = ErrSession
	}
	return who, err
}

// finder returns the holder of a credential, and the end of its validity; the
// zero time means until it is revoked.
type finder func(ctx context.Context, text string, now time.Time) (who Principal, until time.Time, err error)

func (a *Authenticator) authenticate(ctx context.Context, text string, now time.Time, as shown, find finder) (Principal, error) {
	who, since, ok := a.recall(as, now)
	if ok {
		return who, nil
	}
	answer := a.lookups.DoChan(fmt.Sprintf("%x %t %d", as.hash, as.session, since), func() (_ any, err error) {
		defer func() {
			if p := recover(); p != nil { // in this goroutine it would end the process
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		if who, _, ok := a.recall(as, now); ok {
			return who, nil // from a lookup that has just ended
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		who, until, err := find(ctx, text, now)
		if most := now.Add(CacheFor); until.IsZero() || until.After(most) {
			until = most
		}
		if err == nil {
			a.remember(as, remembered{who, until}, now, since)
		}
		return who, err
	})
	var found singleflight.Result
	select {
	case found = <-answer:
	case <-ctx.Done():
		found.Err = ctx.Err()
	}
	switch err := found.Err; {
	case errors.Is(err, ErrToken):
		return Principal{}, ErrToken
	case errors.Is(err, fault.Denied):
		return Principal{}, err
	case err != nil:
		return Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	who, _ = found.Val.(Principal)
	return who, nil
}

// recall returns the cached holder of a credential, and the count of calls of Forget.
func (a *Authenticator) recall(as shown, now time.Time) (who Principal, since int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[as]
	if ok = ok && now.Before(found.until); ok {
		a.markUsed(found.who, now)
	}
	return found.who, a.forgotten, ok
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

// Forget removes a token, a person or a browser session from the cache. A
// revocation then takes effect immediately in this process.
func (a *Authenticator) Forget(id TokenID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forgotten++
	for as, r := range a.known {
		if r.who.Token == id || r.who.Person() == uuid.UUID(id) || r.who.Operator == uuid.UUID(id) || r.who.Browser.ID == uuid.UUID(id) {
			delete(a.known, as)
		}
	}
}

// remember caches the result of a lookup, unless Forget was called since the lookup began:
// since is the count of its calls at that time.
func (a *Authenticator) remember(as shown, r remembered, now time.Time, since int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.markUsed(r.who, now)
	if since != a.forgotten {
		return
	}
	if len(a.known) >= maxCached {
		for old, r := range a.known {
			if !now.Before(r.until) {
				delete(a.known, old)
			}
		}
	}
	if len(a.known) >= maxCached {
		clear(a.known) // the cache is full: all tokens are looked up again
	}
	a.known[as] = r
}

// markUsed records the use of a token by its person. It skips those beyond
// 2*maxCached. The caller holds the mutex.
func (a *Authenticator) markUsed(who Principal, now time.Time) {
	for _, id := range []uuid.UUID{uuid.UUID(who.Token), who.Operator} {
		if _, ok := a.used[id]; id != uuid.Nil && (ok || len(a.used) < 2*maxCached) {
			a.used[id] = now
		}
	}
}

// Flush writes the last uses of tokens. After an error they are kept for the
// next Flush.
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

// keep restores unwritten uses, unless there are newer ones.
func (a *Authenticator) keep(ids []uuid.UUID, ats []time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, id := range ids {
		if a.used[id].Before(ats[i]) && len(a.used) < 2*maxCached {
			a.used[id] = ats[i]
		}
	}
}

// Keep flushes every flushEvery until ctx ends, and then once more. It calls
// failed with each error.
func (a *Authenticator) Keep(ctx context.Context, failed func(error)) {
	every := time.NewTicker(flushEvery)
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
