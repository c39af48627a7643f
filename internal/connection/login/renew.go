package login

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/oauth"
)

const (
	// A token is renewed a fifth of its time before its end, but mostEarly at most.
	mostEarly = 5 * time.Minute
	// nearEnd is the time before its end from which a token is no longer used.
	nearEnd = 2 * time.Second
	// fresh is the age up to which the source's rejection of a token is not answered
	// with another one.
	fresh = time.Minute
	// lookAgain is the pause between two looks at a renewal of another worker.
	lookAgain = 100 * time.Millisecond
	// maxScope bounds the scopes of a login, in bytes.
	maxScope = 2000
)

// renewAt returns when a token is due for renewal, or without a refresh token for
// its loss; nil for one without an end.
func renewAt(s stored) *time.Time {
	t := s.Tokens
	if t.ExpiresAt.IsZero() {
		return nil
	}
	if t.Refresh == "" {
		return &t.ExpiresAt
	}
	return new(t.ExpiresAt.Add(-min(t.ExpiresAt.Sub(s.IssuedAt)/5, mostEarly)))
}

// place names the login of a source.
type place struct {
	tenant envelope.TenantID
	source string
}

// loss is the reason why a login is lost. client is set if the authorization server
// does not know the client any more.
type loss struct {
	reason string
	client bool
}

// lossOf returns the loss that an error of a renewal means; ok is false for an error
// that may pass.
func lossOf(err error, interrupted bool) (lost loss, ok bool) {
	refused, ok := errors.AsType[*oauth.Refused](err)
	if !ok {
		return lost, false
	}
	switch refused.Code {
	case "invalid_grant":
		lost.reason = "the authorization server does not accept the refresh token any more"
		if interrupted {
			lost.reason += "; a worker was interrupted while it renewed the token"
		}
	case "invalid_client", "unauthorized_client":
		lost = loss{"the authorization server does not know Countersign as a client any more", true}
	case "access_denied", "invalid_request", "invalid_scope", "invalid_target", "unsupported_grant_type":
		lost.reason = "the authorization server refuses to renew the token: " + refused.Code
	default:
		return lost, false
	}
	return lost, true
}

// Of returns the tokens of a source, for requests to an address.
func (l *Logins) Of(tenant envelope.TenantID, id, address string) mcp.Tokens {
	return &Tokens{logins: l, at: place{tenant, id}, address: address}
}

// Tokens are the tokens of one source. It keeps the current one in memory, and is
// safe for concurrent use.
type Tokens struct {
	logins  *Logins
	at      place
	address string
	finds   singleflight.Group

	mu      sync.Mutex
	current oauth.Tokens
}

// Token returns a token other than rejected, which the source did not accept; "" for
// none. The error is source.ErrLoginLost, or source.ErrLoginUnavailable.
func (t *Tokens) Token(ctx context.Context, rejected string) (string, error) {
	t.mu.Lock()
	current := t.current
	t.mu.Unlock()
	if current.Access != rejected && usable(current) {
		return current.Access, nil
	}
	// It outlives the context of its first caller. Callers that met the rejection of
	// an older token share it, and find a newer one.
	got := t.finds.DoChan(rejected, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseFor)
		defer cancel()
		return t.find(ctx, rejected)
	})
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-got:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	}
}

// NeedScopes records scopes that the source demands for a tool, or with "" for every
// call. A login that was made with these scopes and lacks them nonetheless is left as
// it is: each login adds a scope, so that they end.
func (t *Tokens) NeedScopes(ctx context.Context, token, tool string, scopes []string) error {
	l := t.logins
	var lacking *source.ScopeError
	err := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) error {
		found, err := l.get(ctx, tx, t.at)
		if err != nil || found.lost || found.URL != t.address {
			return cmp.Or(err, source.ErrLoginLost)
		}
		switch {
		case found.Tokens.Access != token:
			return errReplaced
		case !found.needs(scopes):
			return nil
		case !found.waits(tool, scopes):
			if found.needed, err = lack(ctx, tx, t.at, found, tool, scopes); err != nil {
				return err
			}
		}
		lacking = &source.ScopeError{Scopes: found.needed}
		return nil
	})
	switch {
	case err != nil:
		return unavailable(ctx, l.log, t.at, err)
	case lacking == nil:
		return nil
	}
	return lacking
}

var errReplaced = errors.New("the token was replaced meanwhile")

// needs reports whether scopes are valid, and some of them were not asked for.
func (r row) needs(scopes []string) bool {
	asked, more := strings.Fields(r.Server.Scope), false
	size := len(r.Server.Scope)
	for _, scope := range slices.Concat(r.needed, scopes) {
		size += len(scope) + 1
		if !oauth.IsScope(scope) {
			return false
		}
	}
	for _, scope := range scopes {
		more = more || !slices.Contains(asked, scope)
	}
	return more && size <= maxScope
}

// waits reports whether it is recorded that a tool needs scopes.
func (r row) waits(tool string, scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(r.needed, scope) }) &&
		(len(r.tools) == 0 || slices.Contains(r.tools, tool))
}

// usable reports whether a token has not ended.
func usable(t oauth.Tokens) bool {
	return t.Access != "" && (t.ExpiresAt.IsZero() || time.Now().Before(t.ExpiresAt.Add(-nearEnd)))
}

// find returns a token other than rejected, from the database or by a renewal, here
// or by another worker.
func (t *Tokens) find(ctx context.Context, rejected string) (string, error) {
	for {
		var found row
		var renewal uuid.UUID
		err := postgres.InTx(ctx, t.logins.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			if found, err = t.logins.get(ctx, tx, t.at); err != nil || found.lost || found.URL != t.address {
				return err
			}
			if found.Tokens.Access != rejected && usable(found.Tokens) {
				return nil
			}
			candidate := uuid.New()
			claimed, err := claim(ctx, tx, t.at, found.version, candidate)
			if claimed {
				renewal = candidate
			}
			return err
		})
		switch {
		case err != nil:
			return "", unavailable(ctx, t.logins.log, t.at, err)
		case found.lost || found.URL != t.address:
			return "", source.ErrLoginLost
		case found.Tokens.Access != rejected && usable(found.Tokens):
			t.mu.Lock()
			t.current = found.Tokens
			t.mu.Unlock()
			return found.Tokens.Access, nil
		case renewal != uuid.Nil:
			if err := t.logins.renew(ctx, t.at, renewal, found, found.Tokens.Access == rejected); err != nil {
				return "", err
			}
			continue
		}
		timer := time.NewTimer(lookAgain)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", source.ErrLoginUnavailable
		case <-timer.C:
		}
	}
}

// unavailable logs an error and returns the one for callers.
func unavailable(ctx context.Context, log *slog.Logger, at place, err error) error {
	if errors.Is(err, source.ErrLoginLost) {
		return source.ErrLoginLost
	}
	log.WarnContext(ctx, "token of a source is unavailable", slog.String("tenant_id", at.tenant.String()), slog.String("source_id", at.source), slog.Any("error", err))
	return source.ErrLoginUnavailable
}

// renew renews a token under a claim. The new one is committed before anybody can use
// it.
func (l *Logins) renew(ctx context.Context, at place, renewal uuid.UUID, from row, rejected bool) error {
	ctx = context.WithoutCancel(ctx) // an answer that was received is stored
	ctx, cancel := context.WithTimeout(ctx, leaseFor)
	defer cancel()
	now := time.Now()
	switch {
	case rejected && from.fresh:
		return l.lost(ctx, at, renewal, from.stored, loss{reason: "the source rejects a token that was just issued"})
	case from.Tokens.Refresh == "" && rejected:
		return l.lost(ctx, at, renewal, from.stored, loss{reason: "the source rejects the token, and the authorization server gave no refresh token"})
	case from.Tokens.Refresh == "":
		return l.lost(ctx, at, renewal, from.stored, loss{reason: "the token has expired, and the authorization server gave no refresh token"})
	}
	next := from.stored
	var err error
	next.Tokens, err = l.client.Refresh(ctx, from.Server, from.Client, from.Tokens, now)
	next.IssuedAt = now
	if lost, ok := lossOf(err, from.interrupted); ok {
		return l.lost(ctx, at, renewal, from.stored, lost)
	}
	if err != nil {
		put := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) error { return putOff(ctx, tx, at, renewal) })
		return unavailable(ctx, l.log, at, errors.Join(err, put))
	}
	return l.keep(ctx, at, renewal, next)
}

// keep stores a renewed token, with several attempts: without it the login is lost.
func (l *Logins) keep(ctx context.Context, at place, renewal uuid.UUID, next stored) error {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		var kept bool
		err := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			kept, err = l.renewed(ctx, tx, at, renewal, next)
			return err
		})
		if err == nil {
			if !kept {
				l.log.WarnContext(ctx, "renewed token is not stored: the login was replaced", slog.String("tenant_id", at.tenant.String()), slog.String("source_id", at.source))
			}
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return unavailable(ctx, l.log, at, err)
		case <-timer.C:
		}
	}
}

// lost records the loss of a login. The error is nil if the login was replaced
// meanwhile.
func (l *Logins) lost(ctx context.Context, at place, renewal uuid.UUID, s stored, why loss) error {
	var lost bool
	err := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		lost, err = lose(ctx, tx, at, renewal, s, why)
		return err
	})
	switch {
	case err != nil:
		return unavailable(ctx, l.log, at, err)
	case !lost:
		return nil
	}
	l.log.WarnContext(ctx, "login of a source is lost", slog.String("tenant_id", at.tenant.String()), slog.String("source_id", at.source), slog.String("reason", why.reason))
	return source.ErrLoginLost
}

// RenewDue renews the tokens of every tenant that are near their end. Workers may
// call it at the same time: each token is renewed by one of them.
func (l *Logins) RenewDue(ctx context.Context) error {
	const most, atOnce = 100, 8
	var places []place
	err := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		places, err = due(ctx, tx, most)
		return err
	})
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, at := range places {
		g.Go(func() error {
			l.renewDue(ctx, at)
			return nil
		})
	}
	return g.Wait()
}

// renewDue renews one token. What fails is logged, and tried again later.
func (l *Logins) renewDue(ctx context.Context, at place) {
	var found row
	var claimed bool
	renewal := uuid.New()
	err := postgres.InTx(ctx, l.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		if found, err = l.get(ctx, tx, at); err != nil || found.lost {
			return err
		}
		if is := renewAt(found.stored); is == nil || time.Now().Before(*is) {
			return nil // another worker has renewed it
		}
		claimed, err = claim(ctx, tx, at, found.version, renewal)
		return err
	})
	if err != nil {
		_ = unavailable(ctx, l.log, at, err) // logged
		return
	}
	if claimed {
		_ = l.renew(ctx, at, renewal, found, false) // logged and stored
	}
}
