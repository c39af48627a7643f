package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// TenantName is the tenant that the house works for.
	TenantName = "demo"

	tokensName   = "tokens.json"
	demoSession  = "demo"
	agentName    = "demo agent"
	operatorName = "demo operator"
	adminName    = "demo admin"
	ownerName    = "demo owner"
)

// Tokens are the demo tenant's, one for each role.
type Tokens struct {
	Agent    string `json:"agent"`
	Operator string `json:"operator"`
	Admin    string `json:"admin"`
	Owner    string `json:"owner"`
}

// fillTenant sees to it that there are the demo tenant and a valid token for
// each role: the ones of the last time where they still are.
func (h *House) fillTenant(ctx context.Context) (string, error) {
	var err error
	if h.tenant, err = h.ensureTenant(ctx); err != nil {
		return "", err
	}
	kept, err := readTokens(h.TokensFile())
	if err != nil {
		return "", err
	}
	h.tokens = kept
	for _, t := range []struct {
		text  *string
		grant identity.Grant
	}{
		{&h.tokens.Agent, identity.Grant{Name: agentName, Role: identity.RoleAgent, Session: demoSession}},
		{&h.tokens.Operator, identity.Grant{Name: operatorName, Role: identity.RoleOperator}},
		{&h.tokens.Admin, identity.Grant{Name: adminName, Role: identity.RoleAdmin}},
		{&h.tokens.Owner, identity.Grant{Name: ownerName, Role: identity.RoleOwner}},
	} {
		if err := h.ensureToken(ctx, t.text, t.grant); err != nil {
			return "", err
		}
	}
	if h.tokens == kept {
		return TenantName + ", with the tokens it had", nil
	}
	return TenantName + ", with tokens for an agent, an operator, an admin and an owner", writeTokens(h.TokensFile(), h.tokens)
}

func (h *House) ensureTenant(ctx context.Context) (envelope.TenantID, error) {
	var id envelope.TenantID
	find := func(tx pgx.Tx) (err error) {
		id, err = identity.TenantByName(ctx, tx, TenantName)
		return err
	}
	err := postgres.InTx(ctx, h.pool, postgres.Admin(), find)
	if !errors.Is(err, fault.NotFound) {
		return id, err
	}
	err = postgres.InTx(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
		id, err = identity.NewTenant(ctx, tx, TenantName)
		return err
	})
	if errors.Is(err, fault.Conflict) { // another process was quicker
		err = postgres.InTx(ctx, h.pool, postgres.Admin(), find)
	}
	return id, err
}

// ensureToken replaces a token that is not the tenant's, or not valid.
func (h *House) ensureToken(ctx context.Context, text *string, grant identity.Grant) error {
	now := time.Now()
	who, err := identity.NewAuthenticator(h.pool).Authenticate(ctx, *text, now)
	if err == nil && who.Tenant == h.tenant && who.Role == grant.Role {
		return nil
	}
	if err != nil && !errors.Is(err, identity.ErrToken) {
		return err
	}
	return postgres.InTx(ctx, h.pool, postgres.API(h.tenant), func(tx pgx.Tx) error {
		made, err := identity.Issue(ctx, tx, h.tenant, grant, now)
		*text = made.Token.Text()
		return err
	})
}

// readTokens reads the tokens of the last time. A file that holds none is as
// good as no file.
func readTokens(path string) (Tokens, error) {
	var t Tokens
	if path == "" {
		return t, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read the tokens: %w", err)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return Tokens{}, nil // unreadable: new tokens replace the file
	}
	return t, nil
}

// writeTokens keeps the tokens where only their owner can read them.
func writeTokens(path string, t Tokens) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	if err := keep(path, text); err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	return nil
}
