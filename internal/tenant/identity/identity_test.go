package identity_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func now() time.Time { return time.Now().UTC() }

func tenantOf(t *testing.T, db postgres.Begins) envelope.TenantID {
	t.Helper()
	var tenant envelope.TenantID
	err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		var err error
		tenant, err = identity.NewTenant(t.Context(), tx, "t-"+uuid.NewString())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

func issue(t *testing.T, db postgres.Begins, tenant envelope.TenantID, g identity.Grant, at time.Time) identity.Issued {
	t.Helper()
	var made identity.Issued
	err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
		var err error
		made, err = identity.Issue(t.Context(), tx, tenant, g, at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func revoke(t *testing.T, db postgres.Begins, tenant envelope.TenantID, id identity.TokenID) error {
	t.Helper()
	return postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
		return identity.Revoke(t.Context(), tx, tenant, id, "ana")
	})
}

func TestAuthenticateReturnsTheGrant(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	employee := envelope.EmployeeID(uuid.New())

	for _, g := range []identity.Grant{
		{Name: "mailer", Role: identity.RoleAgent, Employee: employee, Session: "s1", TTL: time.Hour},
		{Name: "ana", Role: identity.RoleOperator},
		{Name: "root", Role: identity.RoleAdmin},
	} {
		made := issue(t, db, tenant, g, now())
		got, err := identity.NewAuthenticator(db).Authenticate(t.Context(), made.Token.Text(), now())
		if err != nil {
			t.Fatalf("Authenticate(token of %s): %v", g.Name, err)
		}
		want := identity.Principal{Token: made.Principal.Token, Tenant: tenant, Name: g.Name, Role: g.Role, Employee: g.Employee, Session: g.Session}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("principal (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(made.Token.Text(), "cs_"+string(g.Role)+"_") {
			t.Errorf("the token of %s does not say its role", g.Name)
		}
	}
}

func TestAgentWithoutSessionGetsANewOne(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)

	made := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, now())

	if want := "token-" + made.Principal.Token.String(); made.Principal.Session != want {
		t.Errorf("Session = %q, want %q", made.Principal.Session, want)
	}
}

func TestAuthenticateRejectsInvalidTokens(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	expired := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent, TTL: time.Minute}, now().Add(-time.Hour))
	revoked := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent}, now())
	if err := revoke(t, db, tenant, revoked.Principal.Token); err != nil {
		t.Fatal(err)
	}
	valid := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent}, now()).Token.Text()

	for name, text := range map[string]string{
		"empty":               "",
		"without prefix":      strings.TrimPrefix(valid, "cs_"),
		"of no role":          strings.Replace(valid, "agent", "owner", 1),
		"of another role":     strings.Replace(valid, "agent", "admin", 1),
		"cut":                 valid[:len(valid)-1],
		"longer":              valid + "A",
		"unknown":             "cs_agent_" + strings.Repeat("A", 43),
		"not base64":          "cs_agent_" + strings.Repeat("!", 43),
		"expired":             expired.Token.Text(),
		"revoked":             revoked.Token.Text(),
		"with a stray blank ": valid + " ",
	} {
		_, err := identity.NewAuthenticator(db).Authenticate(t.Context(), text, now())
		if !errors.Is(err, identity.ErrToken) {
			t.Errorf("Authenticate(token %s) error = %v, want ErrToken", name, err)
		}
	}
}

// counting counts the transactions that are begun.
type counting struct {
	postgres.Begins
	begun int
}

func (c *counting) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	c.begun++
	return c.Begins.BeginTx(ctx, opts)
}

// refusing begins no transactions while it is set.
type refusing struct {
	postgres.Begins
	refuse bool
}

func (r *refusing) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	if r.refuse {
		return nil, errors.New("no database")
	}
	return r.Begins.BeginTx(ctx, opts)
}

func TestAuthenticateQueriesOncePerCachePeriod(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	made := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, now())
	counted := &counting{Begins: db}
	auth := identity.NewAuthenticator(counted)
	start := now()

	for range 3 {
		if _, err := auth.Authenticate(t.Context(), made.Token.Text(), start); err != nil {
			t.Fatal(err)
		}
	}
	if counted.begun != 1 {
		t.Errorf("three looks at one token asked the database %d times, want 1", counted.begun)
	}
	if err := revoke(t, db, tenant, made.Principal.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.Authenticate(t.Context(), made.Token.Text(), start.Add(identity.CacheFor)); !errors.Is(err, identity.ErrToken) {
		t.Errorf("after CacheFor a revoked token gives %v, want ErrToken", err)
	}
}

func TestForgetEndsCaching(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	made := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, now())
	auth := identity.NewAuthenticator(db)
	if _, err := auth.Authenticate(t.Context(), made.Token.Text(), now()); err != nil {
		t.Fatal(err)
	}
	if err := revoke(t, db, tenant, made.Principal.Token); err != nil {
		t.Fatal(err)
	}

	auth.Forget(made.Principal.Token)

	if _, err := auth.Authenticate(t.Context(), made.Token.Text(), now()); !errors.Is(err, identity.ErrToken) {
		t.Errorf("after Forget a revoked token gives %v, want ErrToken", err)
	}
}

func TestIssueRejectsInvalidGrants(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)

	for name, g := range map[string]identity.Grant{
		"no name":      {Role: identity.RoleAgent},
		"a long name":  {Name: strings.Repeat("n", 201), Role: identity.RoleAgent},
		"two lines":    {Name: "a\nb", Role: identity.RoleAgent},
		"turned text":  {Name: "a\u202eb", Role: identity.RoleAgent},
		"no role":      {Name: "a"},
		"another role": {Name: "a", Role: "root"},
		"negative TTL": {Name: "a", Role: identity.RoleAgent, TTL: -time.Second},
	} {
		err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
			_, err := identity.Issue(t.Context(), tx, tenant, g, now())
			return err
		})
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("Issue(%s) error = %v, want fault.Invalid", name, err)
		}
	}
}

func TestRevokeReachesNoOtherTenant(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	one, two := tenantOf(t, db), tenantOf(t, db)
	made := issue(t, db, one, identity.Grant{Name: "a", Role: identity.RoleAdmin}, now())

	if err := revoke(t, db, two, made.Principal.Token); !errors.Is(err, fault.NotFound) {
		t.Errorf("Revoke by another tenant = %v, want fault.NotFound", err)
	}
	if _, err := identity.NewAuthenticator(db).Authenticate(t.Context(), made.Token.Text(), now()); err != nil {
		t.Errorf("the token was revoked by another tenant: %v", err)
	}
}

func TestTenantNames(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	name := "acme-" + uuid.NewString()[:8]
	var tenant, found envelope.TenantID
	err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		if tenant, err = identity.NewTenant(t.Context(), tx, name); err != nil {
			return err
		}
		found, err = identity.TenantByName(t.Context(), tx, name)
		return err
	})
	if err != nil || found != tenant {
		t.Fatalf("TenantByName = %v, %v, want %v", found, err, tenant)
	}

	for _, c := range []struct {
		name string
		want fault.Kind
	}{{name, fault.Conflict}, {"Not A Name", fault.Invalid}, {"", fault.Invalid}} {
		err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
			_, err := identity.NewTenant(t.Context(), tx, c.name)
			return err
		})
		if !errors.Is(err, c.want) {
			t.Errorf("NewTenant(%q) error = %v, want %s", c.name, err, c.want)
		}
	}
	err = postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := identity.TenantByName(t.Context(), tx, "nobody-of-that-name")
		return err
	})
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("TenantByName(unknown) error = %v, want fault.NotFound", err)
	}
}

func TestTokenIsNotPrinted(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	made := issue(t, db, tenantOf(t, db), identity.Grant{Name: "a", Role: identity.RoleAgent}, now())
	var log strings.Builder

	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", slog.Any("made", made.Token))

	for how, text := range map[string]string{"log": log.String(), "%v": fmt.Sprintf("%v", made.Token), "%+v": fmt.Sprintf("%+v", made)} {
		if strings.Contains(text, made.Token.Text()) {
			t.Errorf("%s shows the token", how)
		}
	}
}
