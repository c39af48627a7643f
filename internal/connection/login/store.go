package login

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/oauth"
)

// The contexts of encryption. No source can have such a name.
const (
	contextClient = "client of issuer "
	contextState  = "begun login of "
	contextTokens = "login of "
)

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"source_logins_source_id_fkey":       fault.New(fault.NotFound, "no such source"),
	"source_login_states_source_id_fkey": fault.New(fault.NotFound, "no such source"),
}

func hashOf(state string) []byte {
	sum := sha256.Sum256([]byte(state))
	return sum[:]
}

// encrypt encrypts a value.
func (l *Logins) encrypt(tenant envelope.TenantID, context string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return l.cipher.Encrypt(tenant, context, text)
}

// decrypt decrypts the result of encrypt.
func (l *Logins) decrypt(tenant envelope.TenantID, context string, encrypted []byte, into any) error {
	text, err := l.cipher.Decrypt(tenant, context, encrypted)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// storedClient returns the stored client of an issuer; ok reports whether it exists.
func (l *Logins) storedClient(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, issuer string) (client oauth.Registration, configured, ok bool, err error) {
	row, err := dbsqlc.New().SourceClientGet(ctx, tx, &dbsqlc.SourceClientGetParams{TenantID: tenant, Issuer: issuer})
	if errors.Is(err, pgx.ErrNoRows) {
		return client, false, false, nil
	}
	if err == nil {
		err = l.decrypt(tenant, contextClient+issuer, row.Secret, &client)
	}
	return client, row.Configured, err == nil, err
}

func (l *Logins) putState(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, state string, by uuid.UUID, b begun, until time.Time) error {
	secret, err := l.encrypt(tenant, contextState+b.Source, b)
	if err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().SourceLoginStatePut(ctx, tx, &dbsqlc.SourceLoginStatePutParams{
		TenantID: tenant, SourceID: b.Source, StateHash: hashOf(state), BegunBy: by, Secret: secret, ExpiresAt: until,
	}))
}

var errNoState = fault.New(fault.NotFound, "no such login; it has expired, was finished, or somebody else began it: begin again")

// state returns a begun login of a caller.
func (l *Logins) state(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, state string, by uuid.UUID) (b begun, err error) {
	row, err := dbsqlc.New().SourceLoginStateGet(ctx, tx, &dbsqlc.SourceLoginStateGetParams{TenantID: tenant, StateHash: hashOf(state), BegunBy: by})
	if err != nil {
		return b, postgres.Found(err, errNoState)
	}
	return b, l.decrypt(tenant, contextState+row.SourceID, row.Secret, &b)
}

// takeState uses a begun login.
func takeState(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, state string, by uuid.UUID) error {
	n, err := dbsqlc.New().SourceLoginStateTake(ctx, tx, &dbsqlc.SourceLoginStateTakeParams{TenantID: tenant, StateHash: hashOf(state), BegunBy: by})
	return postgres.Affected(n, err, errNoState)
}

// Put stores a login, and wakes the actions that wait for it. Without accepted the
// source is in quarantine afterwards.
func (l *Logins) Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, m Made, by envelope.Actor, accepted bool) error {
	if m.device {
		if err := takeState(ctx, tx, tenant, m.state, m.by); err != nil {
			return err
		}
	}
	secret, err := l.encrypt(tenant, contextTokens+m.Source, m.stored)
	if err != nil {
		return err
	}
	q := dbsqlc.New()
	err = violations.Fault(q.SourceLoginPut(ctx, tx, &dbsqlc.SourceLoginPutParams{
		TenantID: tenant, SourceID: m.Source, Issuer: m.Server.Issuer, Scope: m.Tokens.Scope, Secret: secret, LoginBy: string(by),
		ExpiresAt: postgres.OrNull(m.Tokens.ExpiresAt), RenewAt: renewAt(m.stored),
	}))
	if err == nil && m.keepClient {
		var client []byte
		if client, err = l.encrypt(tenant, contextClient+m.Server.Issuer, m.Client); err == nil {
			err = q.SourceClientPut(ctx, tx, &dbsqlc.SourceClientPutParams{TenantID: tenant, Issuer: m.Server.Issuer, Secret: client, Configured: m.configured})
		}
	}
	if err == nil {
		err = changed(ctx, tx, tenant, m.Source, accepted)
	}
	return err
}

// Remove removes the login of a source, if it has one. Without accepted the source
// is in quarantine afterwards. It returns the encrypted login for Revoke.
func Remove(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, accepted bool) ([]byte, error) {
	secret, err := dbsqlc.New().SourceLoginDelete(ctx, tx, &dbsqlc.SourceLoginDeleteParams{TenantID: tenant, SourceID: source})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secret, changed(ctx, tx, tenant, source, accepted)
}

// Revoke revokes the tokens of a removed login at its authorization server. It returns
// false if the server cannot revoke tokens.
func (l *Logins) Revoke(ctx context.Context, tenant envelope.TenantID, source string, secret []byte) (bool, error) {
	var s stored
	if err := l.decrypt(tenant, contextTokens+source, secret, &s); err != nil {
		return false, err
	}
	return l.client.Revoke(ctx, s.Server, s.Client, s.Tokens)
}

// changed makes another generation of a source's credentials, and wakes the actions
// that wait for a login.
func changed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string, accepted bool) error {
	q := dbsqlc.New()
	if err := q.SourceLoggedIn(ctx, tx, &dbsqlc.SourceLoggedInParams{TenantID: tenant, SourceID: id, Unaccepted: !accepted}); err != nil {
		return err
	}
	return q.WakePut(ctx, tx, &dbsqlc.WakePutParams{TenantID: tenant, WaitsFor: source.CodeLoginLost})
}

// row is a stored login.
type row struct {
	stored
	version                  int64
	lost, interrupted, fresh bool
	// needed are the scopes that the login lacks, for tools or, without any, for all.
	needed, tools []string
}

func (l *Logins) get(ctx context.Context, tx pgx.Tx, at place) (r row, err error) {
	found, err := dbsqlc.New().SourceLoginGet(ctx, tx, &dbsqlc.SourceLoginGetParams{TenantID: at.tenant, SourceID: at.source, FreshSeconds: fresh.Seconds()})
	if err != nil {
		return r, postgres.Found(err, source.ErrLoginLost)
	}
	r.version, r.lost, r.interrupted, r.fresh = found.Version, found.Lost, found.Interrupted, found.Fresh
	r.needed, r.tools = found.NeededScopes, found.NeededTools
	return r, l.decrypt(at.tenant, contextTokens+at.source, found.Secret, &r.stored)
}

// leaseFor bounds the time of a renewal. It is longer than the requests of one.
const leaseFor = 30 * time.Second

// claim begins the renewal of a version of a token. It returns false if another
// renewal is under way, or has replaced it.
func claim(ctx context.Context, tx pgx.Tx, at place, version int64, renewal uuid.UUID) (bool, error) {
	_, err := dbsqlc.New().SourceLoginClaim(ctx, tx, &dbsqlc.SourceLoginClaimParams{
		Renewal: renewal, LeaseSeconds: leaseFor.Seconds(), TenantID: at.tenant, SourceID: at.source, Version: version,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// renewed stores the tokens of a renewal. It returns false if the login was replaced
// meanwhile.
func (l *Logins) renewed(ctx context.Context, tx pgx.Tx, at place, renewal uuid.UUID, s stored) (bool, error) {
	secret, err := l.encrypt(at.tenant, contextTokens+at.source, s)
	if err != nil {
		return false, err
	}
	n, err := dbsqlc.New().SourceLoginRenewed(ctx, tx, &dbsqlc.SourceLoginRenewedParams{
		Secret: secret, Scope: s.Tokens.Scope, ExpiresAt: postgres.OrNull(s.Tokens.ExpiresAt), RenewAt: renewAt(s),
		TenantID: at.tenant, SourceID: at.source, Renewal: renewal,
	})
	return n == 1, err
}

// lose records that a login is lost, with an event. It returns false if the login was
// replaced meanwhile.
func lose(ctx context.Context, tx pgx.Tx, at place, renewal uuid.UUID, s stored, lost loss) (bool, error) {
	q := dbsqlc.New()
	n, err := q.SourceLoginLost(ctx, tx, &dbsqlc.SourceLoginLostParams{Reason: lost.reason, TenantID: at.tenant, SourceID: at.source, Renewal: renewal})
	if err != nil || n == 0 {
		return false, err
	}
	if lost.client {
		if err := q.SourceClientDelete(ctx, tx, &dbsqlc.SourceClientDeleteParams{TenantID: at.tenant, Issuer: s.Server.Issuer}); err != nil {
			return false, err
		}
	}
	return true, audit.Write(ctx, tx, audit.Event{Tenant: at.tenant, Kind: audit.Configured, Actor: envelope.Actor("source/" + at.source), Items: []audit.Item{{
		Subject: "login of source " + at.source + " lost", Detail: map[string]any{"login": "lost", "reason": lost.reason, "issuer": s.Server.Issuer},
	}}})
}

// lack records scopes that a login lacks, with an event, and returns all that it
// lacks.
func lack(ctx context.Context, tx pgx.Tx, at place, from row, tool string, scopes []string) ([]string, error) {
	needed, err := dbsqlc.New().SourceLoginNeeds(ctx, tx, &dbsqlc.SourceLoginNeedsParams{
		Scopes: scopes, Tool: tool, TenantID: at.tenant, SourceID: at.source, Version: from.version,
	})
	if err != nil {
		return nil, postgres.Found(err, errReplaced)
	}
	return needed, audit.Write(ctx, tx, audit.Event{Tenant: at.tenant, Kind: audit.Configured, Actor: envelope.Actor("source/" + at.source), Items: []audit.Item{{
		Subject: "login of source " + at.source + " lacks scopes",
		Detail:  map[string]any{"login": "lacks_scopes", "scopes": needed, "tool": tool, "issuer": from.Server.Issuer},
	}}})
}

// putOff ends a renewal that found the server unavailable.
func putOff(ctx context.Context, tx pgx.Tx, at place, renewal uuid.UUID) error {
	return dbsqlc.New().SourceLoginPutOff(ctx, tx, &dbsqlc.SourceLoginPutOffParams{TenantID: at.tenant, SourceID: at.source, Renewal: renewal})
}

// due returns logins whose tokens are to be renewed.
func due(ctx context.Context, tx pgx.Tx, most int64) ([]place, error) {
	rows, err := dbsqlc.New().SourceLoginDue(ctx, tx, most)
	return postgres.Map(rows, err, func(r dbsqlc.SourceLoginDueRow) place { return place{r.TenantID, r.SourceID} })
}
