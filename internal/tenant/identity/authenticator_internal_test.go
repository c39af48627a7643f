package identity

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// lookups is a finder that counts its calls and answers each after a second.
type lookups struct {
	calls int
	err   error
}

func (l *lookups) find(ctx context.Context, _ string, _ time.Time) (Principal, time.Time, error) {
	l.calls++
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return Principal{}, time.Time{}, ctx.Err()
	}
	return Principal{Name: "ana", Token: TokenID(uuid.Max)}, time.Time{}, l.err
}

// authenticateAll authenticates one token from several callers, the first of which is
// canceled meanwhile, and returns their errors.
func authenticateAll(t *testing.T, auth *Authenticator, from *lookups, callers int, meanwhile func()) []error {
	t.Helper()
	errs := make([]error, callers)
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range errs {
		ctx := t.Context()
		if i == 0 {
			ctx = first
		}
		wg.Go(func() {
			who, err := auth.authenticate(ctx, "", time.Now(), shown{}, from.find)
			if errs[i] = err; err == nil && who.Name != "ana" {
				t.Errorf("authenticate = %q, want ana", who.Name)
			}
		})
		synctest.Wait()
	}
	cancel()
	meanwhile()
	wg.Wait()
	return errs
}

func TestCallersInFlightShareALookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth, from := NewAuthenticator(nil), &lookups{}

		for i, err := range authenticateAll(t, auth, from, 16, func() {}) {
			if canceled := errors.Is(err, context.Canceled); canceled != (i == 0) || !canceled && err != nil {
				t.Errorf("caller %d got %v; only the first was canceled", i, err)
			}
		}

		if from.calls != 1 {
			t.Errorf("16 callers began %d lookups, want 1", from.calls)
		}
	})
}

func TestSharedFailureIsNotCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth, from := NewAuthenticator(nil), &lookups{err: errors.New("no database")}

		for i, err := range authenticateAll(t, auth, from, 4, func() {})[1:] {
			if !errors.Is(err, from.err) {
				t.Errorf("caller %d got %v, want %v", i+1, err, from.err)
			}
		}
		from.err = nil
		if _, err := auth.authenticate(t.Context(), "", time.Now(), shown{}, from.find); err != nil || from.calls != 2 {
			t.Errorf("after a failed lookup: %v, and %d lookups, want 2", err, from.calls)
		}
	})
}

// TestForgetEndsLookups checks that a lookup that read a token before its revocation
// is neither cached nor joined.
func TestForgetEndsLookups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		auth, from := NewAuthenticator(nil), &lookups{}
		revoked := &lookups{err: ErrToken}
		after := func() {
			auth.Forget(TokenID(uuid.Max))
			if _, err := auth.authenticate(t.Context(), "", time.Now(), shown{}, revoked.find); !errors.Is(err, ErrToken) {
				t.Errorf("after Forget, a caller during a lookup got %v, want ErrToken", err)
			}
		}

		authenticateAll(t, auth, from, 2, after)

		if _, err := auth.authenticate(t.Context(), "", time.Now(), shown{}, revoked.find); !errors.Is(err, ErrToken) {
			t.Errorf("after Forget and the lookup, a caller got %v, want ErrToken", err)
		}
	})
}

func TestPanickingLookupIsAnError(t *testing.T) {
	t.Parallel()
	find := func(context.Context, string, time.Time) (Principal, time.Time, error) { panic("broken") }

	if _, err := NewAuthenticator(nil).authenticate(t.Context(), "", time.Now(), shown{}, find); err == nil {
		t.Error("a lookup that panics succeeds")
	}
}
