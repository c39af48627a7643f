package identity_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// sessions is a tenant with an operator's token and an authenticator.
type sessions struct {
	t     *testing.T
	db    *dbtest.Session
	token identity.Issued
	auth  *identity.Authenticator
}

func newSessions(t *testing.T, g identity.Grant) sessions {
	t.Helper()
	db := dbtest.Tx(t)
	g.Name = "a"
	return sessions{t, db, issue(t, db, tenantOf(t, db), g, now()), identity.NewAuthenticator(db)}
}

func (s sessions) open() identity.OpenedSession {
	s.t.Helper()
	made, err := s.auth.OpenWithToken(s.t.Context(), s.token.Token.Text(), identity.Visitor{Address: "192.0.2.7", Program: "b\x1b[2J"}, now())
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// set updates the rows of sessions.
func (s sessions) set(what string) {
	s.t.Helper()
	if _, err := s.db.Exec(s.t.Context(), "UPDATE web_sessions SET "+what); err != nil {
		s.t.Fatal(err)
	}
}

func TestSessionActsAsItsToken(t *testing.T) {
	t.Parallel()
	s := newSessions(t, identity.Grant{Role: identity.RoleAdmin, Tools: []string{"mail:*"}, Scopes: []identity.Scope{identity.PolicyRead}, TTL: 2 * time.Hour})
	made := s.open()

	got, err := s.auth.AuthenticateSession(t.Context(), made.Secret.Text(), now())

	if err != nil || !got.Equal(s.token.Principal) || got.Browser.ID != made.Principal.Browser.ID {
		t.Errorf("AuthenticateSession() = %+v, %v, want the token's", got, err)
	}
	if until := time.Until(got.Browser.ExpiresAt); until > 2*time.Hour {
		t.Errorf("the session lasts %v, longer than its token", until)
	}
	if _, err := s.auth.Authenticate(t.Context(), made.Secret.Text(), now()); !errors.Is(err, identity.ErrToken) {
		t.Errorf("a session's secret as a token = %v, want ErrToken", err)
	}
	if _, err := s.auth.AuthenticateSession(t.Context(), s.token.Token.Text(), now()); !errors.Is(err, identity.ErrSession) {
		t.Errorf("a token as a session = %v, want ErrSession", err)
	}
	var program, stored string
	if err := s.db.QueryRow(t.Context(), "SELECT program, w::text FROM web_sessions w").Scan(&program, &stored); err != nil || program != "b[2J" {
		t.Errorf("program = %q, %v", program, err)
	}
	if secret := made.Secret.Text(); len(stored) == 0 || strings.Contains(stored, secret[len(secret)-20:]) {
		t.Error("the secret is stored")
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{
		"idle": "idle_at = now()", "old": "expires_at = now()",
	} {
		s := newSessions(t, identity.Grant{Role: identity.RoleOperator})
		made, start := s.open(), now()
		if _, err := s.auth.AuthenticateSession(t.Context(), made.Secret.Text(), start); err != nil {
			t.Fatal(err)
		}

		s.set(what)

		if _, err := s.auth.AuthenticateSession(t.Context(), made.Secret.Text(), start.Add(identity.CacheFor)); !errors.Is(err, identity.ErrSession) {
			t.Errorf("a session that is %s = %v, want ErrSession", name, err)
		}
	}
}

// TestCachedSessionEndsInTime checks that a cached session is rejected after its
// end.
func TestCachedSessionEndsInTime(t *testing.T) {
	t.Parallel()
	s := newSessions(t, identity.Grant{Role: identity.RoleOperator})
	made, start := s.open(), now()
	s.set("idle_at = now() + interval '3 seconds'")
	if _, err := s.auth.AuthenticateSession(t.Context(), made.Secret.Text(), start); err != nil {
		t.Fatal(err)
	}

	s.set("idle_at = now()")

	if _, err := s.auth.AuthenticateSession(t.Context(), made.Secret.Text(), start.Add(4*time.Second)); !errors.Is(err, identity.ErrSession) {
		t.Errorf("a session past its end = %v, want ErrSession", err)
	}
}

func TestSessionsAndCodesPerPersonAreBounded(t *testing.T) {
	t.Parallel()
	const sessionsAtMost, codesAtMost = 50, 20
	s := newSessions(t, identity.Grant{Role: identity.RoleOperator})
	first := s.open()
	for range sessionsAtMost {
		s.open()
	}
	inTenant(t, s.db, s.token.Principal.Tenant, func(tx pgx.Tx) error {
		for range codesAtMost + 1 {
			if _, _, err := identity.NewLoginCode(t.Context(), tx, s.token.Principal, s.token.Token.Text(), now()); err != nil {
				return err
			}
		}
		return nil
	})

	var n, codes int
	if err := s.db.QueryRow(t.Context(), "SELECT (SELECT count(1) FROM web_sessions), (SELECT count(1) FROM login_codes)").Scan(&n, &codes); err != nil {
		t.Fatal(err)
	}
	if _, err := s.auth.AuthenticateSession(t.Context(), first.Secret.Text(), now()); n != sessionsAtMost || codes != codesAtMost || !errors.Is(err, identity.ErrSession) {
		t.Errorf("a person has %d sessions and %d codes, and the first session gives %v", n, codes, err)
	}
}

func TestAgentsCannotOpenSessions(t *testing.T) {
	t.Parallel()
	s := newSessions(t, identity.Grant{Role: identity.RoleAgent})

	if _, err := s.auth.OpenWithToken(t.Context(), s.token.Token.Text(), identity.Visitor{}, now()); !errors.Is(err, fault.Denied) {
		t.Errorf("OpenWithToken() of an agent = %v, want denied", err)
	}
}
