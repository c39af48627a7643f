package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// sessionEnd is the reason why a browser session ended before it expired.
type sessionEnd string

const (
	// endLogout is a logout of the browser, endReplaced a later login of the
	// same browser, and endTooMany a login of another one when the person had
	// the maximum number of sessions.
	endLogout   sessionEnd = "logout"
	endReplaced sessionEnd = "replaced"
	endTooMany  sessionEnd = "too_many"
	// endByPerson is a request of the person or of an administrator, from a list
	// of sessions.
	endByPerson sessionEnd = "ended"
	// endDisabled, endLoginChanged and endTokenRevoked are changes of the person
	// or the token of the session.
	endDisabled     sessionEnd = "disabled"
	endLoginChanged sessionEnd = "login_changed"
	endTokenRevoked sessionEnd = "token_revoked"
)

// recordStart records the start of a browser session.
func recordStart(ctx context.Context, tx pgx.Tx, who Principal, via Via, from Visitor) error {
	return audit.Write(ctx, tx, audit.Event{Tenant: who.Tenant, Kind: audit.SessionStarted, Actor: who.Actor(), Items: []audit.Item{{
		Subject: who.Browser.ID.String(), Code: string(via), Detail: map[string]any{"address": from.Address, "expires_at": who.Browser.ExpiresAt},
	}}})
}

// recordEnds records the end of browser sessions. It writes no event if there
// are none.
func recordEnds(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by envelope.Actor, why sessionEnd, ended ...uuid.UUID) error {
	e := audit.Event{Tenant: tenant, Kind: audit.SessionEnded, Actor: by}
	for _, id := range ended {
		e.Items = append(e.Items, audit.Item{Subject: id.String(), Code: string(why)})
	}
	return audit.Write(ctx, tx, e)
}

// refusal is a refused login in a browser.
type refusal struct {
	// who identifies the person or the token, if known, and the tenant; zero if
	// the tenant is unknown.
	who Principal
	via Via
	// provider is the provider of the login, and subject the issuer's subject if
	// the issuer vouched for it.
	provider, subject string
	from              Visitor
}

// about returns the subject for which the refusal is counted. Unknown people
// count for the provider, because anybody can have many accounts there.
func (r *refusal) about() string {
	switch {
	case r.who.Operator != uuid.Nil:
		return "person " + r.who.Operator.String()
	case r.who.Token != TokenID{}:
		return "token " + r.who.Token.String()
	}
	return "provider " + r.provider
}

// refuse records a refused login, if its tenant is known, and returns the
// reason.
func (a *Authenticator) refuse(ctx context.Context, r refusal, reason error) error {
	refused := errors.Is(reason, ErrToken) || errors.Is(reason, fault.Denied)
	if !refused || r.who.Tenant == (envelope.TenantID{}) {
		return reason
	}
	if err := postgres.InTx(ctx, a.db, postgres.API(r.who.Tenant), func(tx pgx.Tx) error { return recordRefusal(ctx, tx, r, reason) }); err != nil {
		return fmt.Errorf("record a refused login: %w", err)
	}
	return reason
}

// recordRefusal counts a refusal, and records it unless there were many.
func recordRefusal(ctx context.Context, tx pgx.Tx, r refusal, reason error) error {
	n, err := dbsqlc.New().RefusedLoginCount(ctx, tx, &dbsqlc.RefusedLoginCountParams{TenantID: r.who.Tenant, About: r.about()})
	if err != nil || !recorded(int(n)) {
		return err
	}
	code := "invalid_credential"
	if e, ok := errors.AsType[*fault.Error](reason); ok {
		code = cmp.Or(e.Code, string(e.Kind))
	}
	detail := map[string]any{"via": r.via, "address": r.from.Address, "logins": n}
	if r.provider != "" {
		detail["provider"] = r.provider
	}
	if name := Plain(r.subject, maxName); name != "" {
		detail["subject"] = name
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: r.who.Tenant, Kind: audit.LoginRefused, Actor: "login", Items: []audit.Item{{
		Subject: r.about(), Code: code, Detail: detail,
	}}})
}

// recorded reports whether the n-th refusal within an hour is recorded as an
// event: the first ten are, and then one each time that the number has doubled.
func recorded(n int) bool {
	const each = 10
	if n <= each {
		return true
	}
	times := n / each
	return n%each == 0 && times&(times-1) == 0
}
