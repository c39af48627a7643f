package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// TenantName is the name of the tenant whose tokens the user gets.
	TenantName = "demo"
	// demonstrationPrefix begins the names of the tenants that demonstrations
	// run in.
	demonstrationPrefix = "demonstration-"

	tokensName = "tokens.json"
)

// Tokens are the tokens of a tenant, one for each role.
type Tokens struct {
	Agent    string `json:"agent"`
	Operator string `json:"operator"`
	Admin    string `json:"admin"`
	Owner    string `json:"owner"`
}

// A tenant is one whose tokens the environment has.
type tenant struct {
	id     envelope.TenantID
	tokens Tokens
}

// prepareTenant makes the tenant demo, unless it exists, and a valid token for
// each role, unless the file of tokens has one.
func (e *Environment) prepareTenant(ctx context.Context) (string, error) {
	var err error
	if e.demo, err = e.ensureTenant(ctx, TenantName); err != nil {
		return "", err
	}
	kept, err := readTokens(e.TokensFile())
	if err != nil {
		return "", err
	}
	e.demo.tokens = kept
	if err := e.ensureTokens(ctx, &e.demo); err != nil {
		return "", err
	}
	if e.demo.tokens == kept {
		return TenantName + ", with the tokens it had", nil
	}
	return TenantName + ", with tokens for an agent, an operator, an admin and an owner", writeTokens(e.TokensFile(), e.demo.tokens)
}

// newDemonstrationTenant makes a tenant for one demonstration, with the sources
// of the tenant demo. So the user's settings of the tenant demo (limits, quiet
// hours, policy) never change the result of a demonstration.
func (e *Environment) newDemonstrationTenant(ctx context.Context, runID string) (tenant, error) {
	t, err := e.ensureTenant(ctx, demonstrationPrefix+runID)
	if err != nil {
		return t, err
	}
	if err := e.ensureTokens(ctx, &t); err != nil {
		return t, err
	}
	return t, e.registerSources(ctx, t)
}

// ensureTenant makes a tenant, unless it exists.
func (e *Environment) ensureTenant(ctx context.Context, name string) (t tenant, err error) {
	find := func(by func(context.Context, pgx.Tx, string) (envelope.TenantID, error)) (envelope.TenantID, error) {
		return postgres.InTxReturning(ctx, e.pool, postgres.Admin(), func(tx pgx.Tx) (envelope.TenantID, error) { return by(ctx, tx, name) })
	}
	t.id, err = find(identity.NewTenant)
	if errors.Is(err, fault.Conflict) {
		t.id, err = find(identity.TenantByName)
	}
	return t, err
}

// ensureTokens replaces the tokens that are not of the tenant, or not valid.
func (e *Environment) ensureTokens(ctx context.Context, of *tenant) error {
	now := time.Now()
	for text, grant := range map[*string]identity.Grant{
		&of.tokens.Agent:    {Name: "demo agent", Role: identity.RoleAgent, Session: "demo"},
		&of.tokens.Operator: {Name: "demo operator", Role: identity.RoleOperator},
		&of.tokens.Admin:    {Name: "demo admin", Role: identity.RoleAdmin},
		&of.tokens.Owner:    {Name: "demo owner", Role: identity.RoleOwner},
	} {
		who, err := identity.NewAuthenticator(e.pool).Authenticate(ctx, *text, now)
		if err == nil && who.Tenant == of.id && who.Role == grant.Role {
			continue
		}
		if err != nil && !errors.Is(err, identity.ErrToken) {
			return err
		}
		err = postgres.InTx(ctx, e.pool, postgres.API(of.id), func(tx pgx.Tx) error {
			made, err := identity.Issue(ctx, tx, of.id, grant, now)
			*text = made.Token.Text()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadTokens returns the tokens that an environment keeps in a folder. Without any the
// result is zero.
func ReadTokens(dir string) (Tokens, error) { return readTokens(filepath.Join(dir, tokensName)) }

// readTokens reads the file of tokens. A missing or invalid file has no
// tokens.
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

// writeTokens writes the tokens to a file that only its owner can read.
func writeTokens(path string, t Tokens) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSecret(path, text); err != nil {
		return fmt.Errorf("write the tokens: %w", err)
	}
	return nil
}
