package process

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

// early is the time before its end from which a token is renewed.
const early = 2 * time.Minute

// tokens renews the access tokens of accounts that log in with OAuth. One process reads
// an account at a time, so that no other renews its token.
type tokens struct {
	db     postgres.Begins
	cipher account.Cipher
	client *oauth.Client

	mu   sync.Mutex
	held map[uuid.UUID]*heldLogin
}

// heldLogin is the login of an account. known are the digests of its encrypted forms,
// the first one and those of renewals: each of them stands for login.
type heldLogin struct {
	login account.Login
	known map[[sha256.Size]byte]bool
}

// token returns the password of an account, or else an access token that has not
// ended.
func (t *tokens) token(ctx context.Context, a account.Account, password string) (string, error) {
	parsed, ok := account.ParseLogin(password)
	if !ok {
		return password, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held[a.ID]
	if at := sha256.Sum256(a.Secret); h == nil || !h.known[at] {
		h = &heldLogin{login: parsed, known: map[[sha256.Size]byte]bool{at: true}}
		t.held[a.ID] = h
	}
	now, current := time.Now(), h.login.Tokens
	if current.Access != "" && (current.ExpiresAt.IsZero() || now.Before(current.ExpiresAt.Add(-early))) {
		return current.Access, nil
	}
	renewed, err := t.client.Refresh(ctx, h.login.Server, h.login.Client, current, now)
	if refused, ok := errors.AsType[*oauth.Refused](err); ok {
		return "", fmt.Errorf("the authorization server does not renew the token of the account %s (%s); log in again with countersign triage setup", a.Name, refused.Code)
	}
	if err != nil {
		return "", err
	}
	h.login.Tokens = renewed
	return renewed.Access, t.store(ctx, a, h)
}

// store stores a renewed login, unless a person has logged in again. The old refresh
// token may be void: the context of the read does not end it.
func (t *tokens) store(ctx context.Context, a account.Account, h *heldLogin) error {
	text, err := h.login.Text()
	if err != nil || len(a.Secret) == 0 { // the secret is not stored
		return err
	}
	secret, err := t.cipher.Encrypt(a.Tenant, a.ID, text)
	if err != nil {
		return err
	}
	h.known[sha256.Sum256(secret)] = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return postgres.InTx(ctx, t.db, postgres.Triage(), func(tx pgx.Tx) error {
		now, err := account.Get(ctx, tx, a.Tenant, a.Name)
		if err != nil || !h.known[sha256.Sum256(now.Secret)] {
			return err
		}
		_, err = account.PutRenewed(ctx, tx, a.Tenant, a.ID, now.Secret, secret)
		return err
	})
}
