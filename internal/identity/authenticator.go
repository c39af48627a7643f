package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// CacheFor is how long a token that was found is taken as valid without
// looking again, and so how long a revocation may take to be felt.
const CacheFor = 10 * time.Second

// maxCached bounds the tokens that are remembered at once.
const maxCached = 10_000

// Authenticator finds out who shows a token, and remembers it for CacheFor.
// Tokens that are not valid are never remembered. It is safe for concurrent
// use.
type Authenticator struct {
	db postgres.Begins

	mu    sync.Mutex
	known map[[sha256.Size]byte]remembered
}

type remembered struct {
	who   Principal
	until time.Time
}

// NewAuthenticator returns an Authenticator that remembers nobody yet.
func NewAuthenticator(db postgres.Begins) *Authenticator {
	return &Authenticator{db: db, known: make(map[[sha256.Size]byte]remembered)}
}

// Authenticate returns who shows a token. The error is ErrToken for one that
// is not valid; any other says that nobody could find out.
func (a *Authenticator) Authenticate(ctx context.Context, text string, now time.Time) (Principal, error) {
	token, err := parseToken(text)
	if err != nil {
		return Principal{}, err
	}
	hash := token.hash()
	a.mu.Lock()
	found, ok := a.known[hash]
	a.mu.Unlock()
	if ok && now.Before(found.until) {
		return found.who, nil
	}
	var who Principal
	err = postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) error {
		var err error
		who, err = lookUp(ctx, tx, hash[:])
		return err
	})
	if errors.Is(err, ErrToken) {
		return Principal{}, ErrToken
	}
	if err != nil {
		return Principal{}, fmt.Errorf("authenticate: %w", err)
	}
	a.remember(hash, remembered{who, now.Add(CacheFor)}, now)
	return who, nil
}

// Forget has the next look at a token ask again. It makes a revocation felt at
// once where it was made.
func (a *Authenticator) Forget(id TokenID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for hash, r := range a.known {
		if r.who.Token == id {
			delete(a.known, hash)
		}
	}
}

func (a *Authenticator) remember(hash [sha256.Size]byte, r remembered, now time.Time) {
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
	a.known[hash] = r
}
