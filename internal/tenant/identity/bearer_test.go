package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

type claims = identitytest.Claims

// audience is the audience of the tests' tokens.
const audience = "countersign"

// newAuthenticator returns an Authenticator for issuers on this machine.
func newAuthenticator(db postgres.Begins) *identity.Authenticator {
	return identity.NewAuthenticator(db, safehttp.Loopback()...)
}

// inTenant runs do in a transaction of a tenant's scope.
func inTenant(t *testing.T, db postgres.Begins, tenant envelope.TenantID, do func(tx pgx.Tx) error) {
	t.Helper()
	if err := postgres.InTx(t.Context(), db, postgres.API(tenant), do); err != nil {
		t.Fatal(err)
	}
}

// trust configures an issuer.
func trust(t *testing.T, db postgres.Begins, tenant envelope.TenantID, p identity.Provider) {
	t.Helper()
	if p.ID == "" {
		p.ID = "p"
	}
	if p.Audience == "" {
		p.Audience = audience
	}
	allow(t, db, tenant, p.Issuer, p.Audience, true)
	inTenant(t, db, tenant, func(tx pgx.Tx) error { return identity.PutProvider(t.Context(), tx, tenant, p) })
}

// allow allows an audience that is not the tenant's own, as an administrator of
// the deployment.
func allow(t *testing.T, db postgres.Begins, tenant envelope.TenantID, issuer, audience string, allowed bool) {
	t.Helper()
	if err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		return identity.AllowAudience(t.Context(), tx, tenant, issuer, audience, allowed)
	}); err != nil {
		t.Fatal(err)
	}
}

// people lists the people of a tenant.
func people(t *testing.T, db postgres.Begins, tenant envelope.TenantID) (all []identity.Operator) {
	t.Helper()
	inTenant(t, db, tenant, func(tx pgx.Tx) (err error) {
		all, err = identity.Operators(t.Context(), tx, tenant)
		return err
	})
	return all
}

// root returns a principal that may create any other.
func root(tenant envelope.TenantID) identity.Principal {
	return identity.Principal{Tenant: tenant, Role: identity.RoleOwner}
}

func TestSignedTokenMakesAPerson(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{
		Issuer: issuer.URL(), RoleClaim: "/realm_access/roles", Roles: map[string]identity.Role{"ops": identity.RoleOperator, "root": identity.RoleAdmin},
		AllowedDomains: []string{"acme.com"},
	})
	token := issuer.Token(audience, at, claims{
		"name": "Ana\u202e Lima\n", "email": "ana@ACME.com", "email_verified": true, "realm_access": claims{"roles": []string{"ops", "root", "else"}},
	})

	got, err := newAuthenticator(db).Authenticate(t.Context(), token, at)

	if err != nil {
		t.Fatal(err)
	}
	all := people(t, db, tenant)
	if len(all) != 1 || all[0].Issuer != issuer.URL() || all[0].Subject != "ana" || all[0].Email != "ana@ACME.com" || all[0].Role != identity.RoleAdmin {
		t.Fatalf("people = %+v", all)
	}
	want := identity.Principal{Token: identity.TokenID(all[0].ID), Tenant: tenant, Name: "Ana Lima", Role: identity.RoleAdmin, Operator: all[0].ID}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	if got.Person() != all[0].ID {
		t.Errorf("Person() = %s, want the operator", got.Person())
	}
}

// unsigned returns a token with a given header and any third part.
func unsigned(t *testing.T, header string, token, third string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1] + "." + third
}

func TestInvalidSignedTokens(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer, other := tenantOf(t, db), identitytest.New(t), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleViewer, Clients: []string{"cli"}})
	key, unknown := issuer.Key(), identitytest.NewKey(t, issuer.Key().ID)
	good := issuer.Token(audience, at, nil)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix(t, key)})
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	signed := func(changed claims, header map[jose.HeaderKey]any) string {
		return identitytest.Sign(t, key, issuer.Claims(audience, at, changed), header)
	}
	half := strings.Split(good, ".")

	for name, token := range map[string]string{
		"alg none":                  unsigned(t, `{"alg":"none","typ":"JWT"}`, good, ""),
		"alg None":                  unsigned(t, `{"alg":"None","typ":"JWT"}`, good, ""),
		"no alg":                    unsigned(t, `{"typ":"JWT"}`, good, half[2]),
		"HS256 with the public key": identitytest.SignAs(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: key.ID}}, issuer.Claims(audience, at, nil), nil),
		"HS256 with the modulus":    identitytest.SignAs(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: key.Private.N.Bytes(), KeyID: key.ID}}, issuer.Claims(audience, at, nil), nil),
		"another key of that name":  identitytest.Sign(t, unknown, issuer.Claims(audience, at, nil), nil),
		"another kind of key":       identitytest.SignAs(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: curve, KeyID: key.ID}}, issuer.Claims(audience, at, nil), nil),
		"another algorithm than the key's": identitytest.SignAs(t, jose.SigningKey{Algorithm: jose.PS256, Key: jose.JSONWebKey{Key: key.Private, KeyID: key.ID}},
			issuer.Claims(audience, at, nil), nil),
		"keys from an address": identitytest.Sign(t, unknown, issuer.Claims(audience, at, nil), map[jose.HeaderKey]any{"jku": elsewhere.URL, "x5u": elsewhere.URL}),
		"a key that is an address": identitytest.Sign(t, identitytest.Key{ID: elsewhere.URL + "/../../etc/passwd", Private: unknown.Private},
			issuer.Claims(audience, at, nil), nil),
		"a key in the header":       identitytest.Sign(t, unknown, issuer.Claims(audience, at, nil), map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: unknown.Private.Public(), KeyID: key.ID}}),
		"a critical header":         signed(nil, map[jose.HeaderKey]any{"crit": []string{"exp2"}, "exp2": 1}),
		"a message of a logout":     signed(nil, map[jose.HeaderKey]any{jose.HeaderType: "logout+jwt"}),
		"events":                    signed(claims{"events": claims{"http://schemas.openid.net/event/backchannel-logout": claims{}}}, nil),
		"another audience":          signed(claims{"aud": "other"}, nil),
		"no audience":               signed(claims{"aud": nil}, nil),
		"an audience in capitals":   signed(claims{"aud": nil, "AUD": audience}, nil),
		"two audiences, no client":  signed(claims{"aud": []string{audience, "other"}}, nil),
		"another client":            signed(claims{"azp": "other"}, nil),
		"another client by its id":  signed(claims{"client_id": "other"}, nil),
		"another issuer of the key": signed(claims{"iss": other.URL()}, nil),
		"an issuer with a slash":    signed(claims{"iss": issuer.URL() + "/"}, nil),
		"an issuer nobody trusts":   other.Token(audience, at, nil),
		"the issuer by another":     identitytest.Sign(t, other.Key(), issuer.Claims(audience, at, nil), nil),
		"expired":                   signed(claims{"exp": at.Add(-61 * time.Second).Unix()}, nil),
		"never expiring":            signed(claims{"exp": nil}, nil),
		"expiring at a text":        signed(claims{"exp": "tomorrow"}, nil),
		"expiring beyond reason":    signed(claims{"exp": 1e300}, nil),
		"not yet":                   signed(claims{"nbf": at.Add(62 * time.Second).Unix()}, nil),
		"of the future":             signed(claims{"iat": at.Add(62 * time.Second).Unix()}, nil),
		"of nobody":                 signed(claims{"sub": ""}, nil),
		"of a number":               signed(claims{"sub": 7}, nil),
		"of a long name":            signed(claims{"sub": strings.Repeat("a", 256)}, nil),
		"of a name with a zero":     signed(claims{"sub": "a\x00b"}, nil),
		"cut":                       good[:len(good)-2],
		"changed":                   half[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+issuer.URL()+`","aud":"countersign","sub":"eve","exp":9999999999}`)) + "." + half[2],
		"without a signature":       half[0] + "." + half[1] + ".",
		"as JSON":                   `{"protected":"` + half[0] + `","payload":"` + half[1] + `","signature":"` + half[2] + `"}`,
		"of four parts":             good + "." + half[2],
		"too long":                  signed(claims{"name": strings.Repeat("a", 17<<10)}, nil),
		"with a blank before":       " " + good,
	} {
		_, err := newAuthenticator(db).Authenticate(t.Context(), token, at)
		if !errors.Is(err, identity.ErrToken) {
			t.Errorf("%s: error = %v, want ErrToken", name, err)
		}
	}

	if asked != 0 {
		t.Errorf("an address in a token was asked %d times", asked)
	}
	if all := people(t, db, tenant); len(all) != 0 {
		t.Errorf("refused tokens made people: %+v", all)
	}
	for name, token := range map[string]string{
		"good":                  good,
		"of another client":     signed(claims{"azp": "cli", "aud": []string{"x", audience}}, nil),
		"a minute late":         signed(claims{"exp": at.Add(-50 * time.Second).Unix()}, nil),
		"a minute early":        signed(claims{"nbf": at.Add(50 * time.Second).Unix()}, nil),
		"an access token":       signed(nil, map[jose.HeaderKey]any{jose.HeaderType: "at+jwt"}),
		"without a key's name":  identitytest.Sign(t, identitytest.Key{Private: key.Private}, issuer.Claims(audience, at, nil), nil),
		"a time with fractions": signed(claims{"exp": float64(at.UnixMilli())/1000 + 60.5}, nil),
	} {
		if _, err := newAuthenticator(db).Authenticate(t.Context(), token, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func pkix(t *testing.T, key identitytest.Key) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestPeopleWithoutRightsAreDenied(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{
		Issuer: issuer.URL(), RoleClaim: "role", Roles: map[string]identity.Role{"op": identity.RoleOperator}, AllowedDomains: []string{"acme.com"},
	})

	for name, changed := range map[string]claims{
		"no e-mail":            {"role": "op"},
		"not verified":         {"role": "op", "email": "a@acme.com"},
		"verified in words":    {"role": "op", "email": "a@acme.com", "email_verified": "yes"},
		"another domain":       {"role": "op", "email": "a@evil.com", "email_verified": true},
		"a domain behind":      {"role": "op", "email": "a@evil-acme.com", "email_verified": true},
		"a domain below":       {"role": "op", "email": "a@sub.acme.com", "email_verified": true},
		"two ats":              {"role": "op", "email": "a@acme.com@evil.com", "email_verified": true},
		"two ats the other":    {"role": "op", "email": "a@evil.com@acme.com", "email_verified": true},
		"a quoted at":          {"role": "op", "email": `"a@evil.com"@acme.com`, "email_verified": true},
		"a list":               {"role": "op", "email": "a@evil.com,b@acme.com", "email_verified": true},
		"an e-mail in capital": {"role": "op", "email": "a@evil.com", "EMAIL": "a@acme.com", "email_verified": true},
		"no role":              {"email": "a@acme.com", "email_verified": true},
		"another role":         {"role": "OP", "email": "a@acme.com", "email_verified": true},
		"a role in an object":  {"role": claims{"op": true}, "email": "a@acme.com", "email_verified": true},
		"our word for a role":  {"role": "owner", "email": "a@acme.com", "email_verified": true},
	} {
		changed["sub"] = name
		_, err := newAuthenticator(db).Authenticate(t.Context(), issuer.Token(audience, at, changed), at)
		if !errors.Is(err, fault.Denied) {
			t.Errorf("%s: error = %v, want fault.Denied", name, err)
		}
	}

	if all := people(t, db, tenant); len(all) != 0 {
		t.Errorf("people without a role were added: %+v", all)
	}
}

func TestSubjectsBelongToTheirIssuer(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, one, two := tenantOf(t, db), identitytest.New(t), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{ID: "one", Issuer: one.URL(), DefaultRole: identity.RoleOperator})
	trust(t, db, tenant, identity.Provider{ID: "two", Issuer: two.URL(), DefaultRole: identity.RoleViewer})
	auth := newAuthenticator(db)
	same := claims{"sub": "ana", "email": "ana@acme.com", "email_verified": true}

	first, err := auth.Authenticate(t.Context(), one.Token(audience, at, same), at)
	if err != nil {
		t.Fatal(err)
	}
	second, err := auth.Authenticate(t.Context(), two.Token(audience, at, same), at)
	if err != nil {
		t.Fatal(err)
	}

	if first.Operator == second.Operator || first.Role != identity.RoleOperator || second.Role != identity.RoleViewer {
		t.Errorf("two issuers' ana are %+v and %+v, want two people with their own roles", first, second)
	}
}

func TestIssuerAndAudienceBelongToOneTenant(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	one, two, issuer := tenantOf(t, db), tenantOf(t, db), identitytest.New(t)
	trust(t, db, one, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleViewer})
	allow(t, db, two, issuer.URL(), audience, true)
	taken := postgres.InTx(t.Context(), db, postgres.API(two), func(tx pgx.Tx) error {
		return identity.PutProvider(t.Context(), tx, two, identity.Provider{ID: "p", Issuer: issuer.URL(), Audience: audience})
	})
	if !errors.Is(taken, fault.Conflict) {
		t.Errorf("PutProvider of another tenant's issuer and audience = %v, want fault.Conflict", taken)
	}
	trust(t, db, two, identity.Provider{Issuer: issuer.URL(), Audience: "two", DefaultRole: identity.RoleViewer})

	both := issuer.Token("", at, claims{"aud": []string{audience, "two"}, "azp": audience})
	if _, err := newAuthenticator(db).Authenticate(t.Context(), both, at); !errors.Is(err, identity.ErrToken) {
		t.Errorf("a token for two tenants = %v, want ErrToken", err)
	}
	who, err := newAuthenticator(db).Authenticate(t.Context(), issuer.Token("two", at, nil), at)
	if err != nil || who.Tenant != two {
		t.Errorf("a token for the second tenant is of %s (%v), want %s", who.Tenant, err, two)
	}
}

func TestKeysAreRefreshedAtABoundedRate(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleViewer})
	auth := newAuthenticator(db)
	if _, err := auth.Authenticate(t.Context(), issuer.Token(audience, at, nil), at); err != nil {
		t.Fatal(err)
	}
	old := issuer.Token(audience, at, claims{"jti": "old"})
	issuer.Rotate(identitytest.NewKey(t, "second"))
	unknown := identitytest.NewKey(t, "nobody's")

	for range 20 {
		if _, err := auth.Authenticate(t.Context(), identitytest.Sign(t, unknown, issuer.Claims(audience, at, nil), nil), at.Add(time.Second)); !errors.Is(err, identity.ErrToken) {
			t.Errorf("a key nobody knows = %v, want ErrToken", err)
		}
	}
	if n := issuer.Asked(); n != 1 {
		t.Errorf("the issuer was asked for its keys %d times, want once", n)
	}
	later := at.Add(11 * time.Second)
	if _, err := auth.Authenticate(t.Context(), issuer.Token(audience, later, nil), later); err != nil {
		t.Errorf("after a rotation of keys: %v", err)
	}
	if _, err := auth.Authenticate(t.Context(), old, later); !errors.Is(err, identity.ErrToken) {
		t.Errorf("a key that the issuer took away = %v, want ErrToken", err)
	}
	if n := issuer.Asked(); n != 2 {
		t.Errorf("the issuer was asked for its keys %d times, want twice", n)
	}
}

func TestIssuerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleViewer})
	own := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, at).Token.Text()
	auth := newAuthenticator(db)
	token := func(at time.Time) string {
		return issuer.Token(audience, at, claims{"exp": at.Add(3 * time.Hour).Unix()})
	}

	issuer.SetDown(true)
	for range 3 {
		if _, err := auth.Authenticate(t.Context(), token(at), at); !errors.Is(err, fault.Busy) {
			t.Errorf("a signed token while the issuer is down = %v, want fault.Busy", err)
		}
	}
	if _, err := auth.Authenticate(t.Context(), own, at); err != nil {
		t.Errorf("a token of our own while the issuer is down: %v", err)
	}
	issuer.SetDown(false)
	if _, err := auth.Authenticate(t.Context(), token(at), at.Add(11*time.Second)); err != nil {
		t.Fatal(err)
	}
	issuer.SetDown(true)
	for wait, want := range map[time.Duration]error{20 * time.Minute: nil, 70 * time.Minute: fault.Busy} {
		if _, err := auth.Authenticate(t.Context(), token(at.Add(wait)), at.Add(wait)); !errors.Is(err, want) {
			t.Errorf("keys that are %s old = %v, want %v", wait, err, want)
		}
	}
}

func TestDisabledPersonIsRejectedEverywhere(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleOperator})
	auth := newAuthenticator(db)
	token := issuer.Token(audience, at, nil)
	who, err := auth.Authenticate(t.Context(), token, at)
	if err != nil {
		t.Fatal(err)
	}
	own := issue(t, db, tenant, identity.Grant{Name: "ana's script", Role: identity.RoleOperator, Operator: who.Operator}, at).Token.Text()
	if got, err := auth.Authenticate(t.Context(), own, at); err != nil || got.Person() != who.Operator {
		t.Fatalf("the token of a person is %+v (%v)", got, err)
	}

	inTenant(t, db, tenant, func(tx pgx.Tx) error {
		o, err := identity.OperatorByID(t.Context(), tx, tenant, who.Operator)
		if err != nil {
			return err
		}
		o.Disabled = true
		return identity.PutOperator(t.Context(), tx, root(tenant), o)
	})

	late := at.Add(identity.CacheFor)
	if _, err := auth.Authenticate(t.Context(), token, late); !errors.Is(err, fault.Denied) {
		t.Errorf("after CacheFor a disabled person's login = %v, want fault.Denied", err)
	}
	if _, err := auth.Authenticate(t.Context(), own, late); !errors.Is(err, identity.ErrToken) {
		t.Errorf("after CacheFor a disabled person's token = %v, want ErrToken", err)
	}
	if _, err := auth.Authenticate(t.Context(), issuer.Token(audience, at, claims{"jti": "x"}), at); !errors.Is(err, fault.Denied) {
		t.Errorf("another login of a disabled person = %v, want fault.Denied", err)
	}
	auth.Forget(identity.TokenID(who.Operator))
	for _, text := range []string{token, own} {
		if _, err := auth.Authenticate(t.Context(), text, at); err == nil {
			t.Error("after Forget a disabled person is let in")
		}
	}
}

func TestRoleFollowsTheIssuerUnlessSetByHand(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), RoleClaim: "role", Roles: map[string]identity.Role{"admin": identity.RoleAdmin, "view": identity.RoleViewer}})
	auth := newAuthenticator(db)
	login := func(role any) (identity.Principal, error) {
		return auth.Authenticate(t.Context(), issuer.Token(audience, at, claims{"role": role, "jti": uuid.NewString()}), at)
	}

	who, err := login("admin")
	if err != nil || who.Role != identity.RoleAdmin {
		t.Fatalf("login = %+v, %v", who, err)
	}
	own := issue(t, db, tenant, identity.Grant{Name: "t", Role: identity.RoleAdmin, Operator: who.Operator}, at).Token.Text()
	if lesser, err := login("view"); err != nil || lesser.Role != identity.RoleViewer || lesser.Operator != who.Operator {
		t.Errorf("after the issuer took the role down: %+v, %v", lesser, err)
	}
	if got, err := newAuthenticator(db).Authenticate(t.Context(), own, at); err != nil || got.Role != identity.RoleViewer {
		t.Errorf("the admin's token of a viewer has the role %q (%v), want viewer", got.Role, err)
	}
	if _, err := login(nil); !errors.Is(err, fault.Denied) {
		t.Errorf("without a role = %v, want fault.Denied", err)
	}
	if _, err := newAuthenticator(db).Authenticate(t.Context(), own, at); !errors.Is(err, identity.ErrToken) {
		t.Errorf("the token of somebody without a role = %v, want ErrToken", err)
	}
	inTenant(t, db, tenant, func(tx pgx.Tx) error {
		o, err := identity.OperatorByID(t.Context(), tx, tenant, who.Operator)
		if err != nil {
			return err
		}
		o.RoleSet = identity.RoleOperator
		return identity.PutOperator(t.Context(), tx, root(tenant), o)
	})
	if set, err := login("admin"); err != nil || set.Role != identity.RoleOperator {
		t.Errorf("with a role set by hand: %+v, %v", set, err)
	}
}

// TestSlackUserDoesNotRiseWithThePerson checks that an administrator who creates
// a person with the administrator's own Slack user cannot act as that person
// once the issuer makes it an owner.
func TestSlackUserDoesNotRiseWithThePerson(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), RoleClaim: "role", Roles: map[string]identity.Role{"owner": identity.RoleOwner, "op": identity.RoleOperator}})
	admin := identity.Principal{Tenant: tenant, Role: identity.RoleAdmin}
	inTenant(t, db, tenant, func(tx pgx.Tx) error {
		_, err := identity.NewOperator(t.Context(), tx, admin, identity.Operator{Name: "boss", Issuer: issuer.URL(), Subject: "boss", SlackTeam: "T", SlackUser: "mine"}, at)
		return err
	})
	bySlack := func() error {
		return postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
			_, err := identity.OperatorBySlack(t.Context(), tx, tenant, "T", "mine")
			return err
		})
	}

	for _, step := range []struct {
		role string
		want error
	}{{"op", nil}, {"op", nil}, {"owner", fault.NotFound}} {
		if _, err := newAuthenticator(db).Authenticate(t.Context(), issuer.Token(audience, at, claims{"sub": "boss", "role": step.role}), at); err != nil {
			t.Fatal(err)
		}
		if err := bySlack(); !errors.Is(err, step.want) {
			t.Errorf("as %s OperatorBySlack = %v, want %v", step.role, err, step.want)
		}
	}
}

func TestConcurrentFirstLoginsCreateOnePerson(t *testing.T) {
	t.Parallel()
	db, at := dbtest.DB(t), now()
	tenant, issuer := tenantOf(t, db), identitytest.New(t)
	trust(t, db, tenant, identity.Provider{Issuer: issuer.URL(), DefaultRole: identity.RoleViewer})
	var wg sync.WaitGroup
	for range 8 {
		token := issuer.Token(audience, at, claims{"jti": uuid.NewString()})
		wg.Go(func() {
			if _, err := newAuthenticator(db).Authenticate(t.Context(), token, at); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	if all := people(t, db, tenant); len(all) != 1 {
		t.Errorf("eight first logins of one person made %d people", len(all))
	}
}

// TestAudienceBelongsToTheTenant checks that other audiences must be allowed by
// the deployment.
func TestAudienceBelongsToTheTenant(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	one, two := tenantOf(t, db), tenantOf(t, db)
	const issuer = "https://login.example.org"
	put := func(tenant envelope.TenantID, audience string) error {
		return postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
			return identity.PutProvider(t.Context(), tx, tenant, identity.Provider{ID: "p", Issuer: issuer, Audience: audience})
		})
	}

	for _, audience := range []string{"countersign", "client", identity.OwnAudience(two), strings.ToUpper(one.String())} {
		if err := put(one, audience); !errors.Is(err, fault.Denied) {
			t.Errorf("PutProvider with the audience %s = %v, want fault.Denied", audience, err)
		}
	}
	if err := put(one, "app-"+one.String()); err != nil {
		t.Errorf("PutProvider with an audience that contains the tenant's id = %v", err)
	}
	if err := put(one, ""); err != nil {
		t.Errorf("PutProvider without an audience = %v", err)
	}
	var all []identity.Provider
	inTenant(t, db, one, func(tx pgx.Tx) (err error) {
		all, err = identity.Providers(t.Context(), tx, one)
		return err
	})
	if len(all) != 1 || all[0].Audience != identity.OwnAudience(one) {
		t.Errorf("without an audience the provider is %+v, want the audience %s", all, identity.OwnAudience(one))
	}

	allow(t, db, one, issuer, "client", true)
	if err := put(two, "client"); !errors.Is(err, fault.Denied) {
		t.Errorf("PutProvider with the audience of another tenant = %v, want fault.Denied", err)
	}
	if err := put(one, "client"); err != nil {
		t.Errorf("PutProvider with an allowed audience = %v", err)
	}
	allow(t, db, one, issuer, "client", false)
	if err := put(one, "client"); !errors.Is(err, fault.Denied) {
		t.Errorf("PutProvider with an audience that is allowed no longer = %v, want fault.Denied", err)
	}
	err := postgres.InTx(t.Context(), db, postgres.API(one), func(tx pgx.Tx) error {
		return identity.AllowAudience(t.Context(), tx, one, issuer, "mine", true)
	})
	if err == nil {
		t.Error("a tenant allowed an audience to itself")
	}
}

func TestInvalidProviders(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)

	for name, p := range map[string]identity.Provider{
		"http elsewhere":        {Issuer: "http://issuer.example.org"},
		"http at a near name":   {Issuer: "http://localhost.example.org"},
		"http at a near number": {Issuer: "http://127.0.0.1.example.org"},
		"a file":                {Issuer: "file:///etc/passwd"},
		"a user":                {Issuer: "https://a:b@issuer.example.org"},
		"a query":               {Issuer: "https://issuer.example.org?x=1"},
		"no host":               {Issuer: "https:///x"},
		"a default of admin":    {Issuer: "https://i", DefaultRole: identity.RoleAdmin},
		"a default of agent":    {Issuer: "https://i", DefaultRole: identity.RoleAgent},
		"roles of agents":       {Issuer: "https://i", RoleClaim: "r", Roles: map[string]identity.Role{"a": identity.RoleAgent}},
		"roles without a claim": {Issuer: "https://i", Roles: map[string]identity.Role{"a": identity.RoleViewer}},
		"a claim without roles": {Issuer: "https://i", RoleClaim: "r"},
		"a domain with a star":  {Issuer: "https://i", AllowedDomains: []string{"*.acme.com"}},
		"a domain in capitals":  {Issuer: "https://i", AllowedDomains: []string{"Acme.com"}},
		"an id of our own kind": {Issuer: "https://i", ID: "../x"},
	} {
		p.Audience = identity.OwnAudience(tenant)
		if p.ID == "" {
			p.ID = "p"
		}
		err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error { return identity.PutProvider(t.Context(), tx, tenant, p) })
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("PutProvider(%s) = %v, want fault.Invalid", name, err)
		}
	}
}

// TestMisbehavingIssuers checks that invalid answers of issuers count as
// unavailable, and that redirects are not followed.
func TestMisbehavingIssuers(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, key := tenantOf(t, db), identitytest.NewKey(t, "k")
	led := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led++ }))
	t.Cleanup(elsewhere.Close)
	short := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537}
	set := func(keys ...jose.JSONWebKey) string {
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := set(jose.JSONWebKey{Key: key.Private.Public(), KeyID: "k"})

	for name, is := range map[string]struct {
		document, keys string
		bounce         bool
	}{
		"of another name":           {`{"issuer":"https://other","jwks_uri":"BASE/keys"}`, good, false},
		"with keys elsewhere":       {`{"issuer":"BASE","jwks_uri":"http://keys.example.org/"}`, good, false},
		"with keys in a file":       {`{"issuer":"BASE","jwks_uri":"file:///etc/passwd"}`, good, false},
		"that sends elsewhere":      {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, good, true},
		"without a document":        {`<html>`, good, false},
		"without keys":              {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, `{"keys":[]}`, false},
		"with other than keys":      {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, `[1]`, false},
		"with a short key":          {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, set(jose.JSONWebKey{Key: short, KeyID: "k"}), false},
		"with a shared secret":      {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, set(jose.JSONWebKey{Key: []byte("secret"), KeyID: "k"}), false},
		"with a private key":        {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, set(jose.JSONWebKey{Key: key.Private, KeyID: "k"}), false},
		"with a key for encryption": {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, set(jose.JSONWebKey{Key: key.Private.Public(), KeyID: "k", Use: "enc"}), false},
		"that never ends":           {`{"issuer":"BASE","jwks_uri":"BASE/keys"}`, `{"keys":["` + strings.Repeat("a", 2<<20) + `"]}`, false},
	} {
		var base string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != "/keys":
				_, _ = w.Write([]byte(strings.ReplaceAll(is.document, "BASE", base)))
			case is.bounce:
				http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			default:
				_, _ = w.Write([]byte(is.keys))
			}
		}))
		base = server.URL
		trust(t, db, tenant, identity.Provider{Issuer: base, DefaultRole: identity.RoleViewer})
		token := identitytest.Sign(t, key, claims{"iss": base, "aud": audience, "sub": "a", "exp": at.Add(time.Minute).Unix()}, nil)

		if _, err := newAuthenticator(db).Authenticate(t.Context(), token, at); !errors.Is(err, fault.Busy) {
			t.Errorf("an issuer %s = %v, want fault.Busy", name, err)
		}
		server.Close()
	}

	if led != 0 {
		t.Errorf("an issuer led elsewhere %d times", led)
	}
}

// TestIssuersOfOtherNetworksNeedASetting checks that no tenant can make the API
// send requests to addresses of its machine or network, for the discovery
// document or for keys.
func TestIssuersOfOtherNetworksNeedASetting(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, key := tenantOf(t, db), identitytest.NewKey(t, "k")
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	trust(t, db, tenant, identity.Provider{Issuer: server.URL, DefaultRole: identity.RoleViewer, WebClientID: "web"})
	token := identitytest.Sign(t, key, claims{"iss": server.URL, "aud": audience, "sub": "a", "exp": at.Add(time.Minute).Unix()}, nil)
	for name, allowed := range map[string][]netip.Prefix{
		"none": nil, "another": {netip.MustParsePrefix("10.0.0.0/8")}, "its own": safehttp.Loopback(),
	} {
		before := asked
		auth := identity.NewAuthenticator(db, allowed...)

		_, err := auth.Authenticate(t.Context(), token, at)
		_, _, loginErr := auth.BeginLogin(t.Context(), tenant, "p", identity.WebClient{}, at.Add(time.Hour))

		if !errors.Is(err, fault.Busy) || !errors.Is(loginErr, fault.Busy) {
			t.Errorf("network %s: %v and %v, want fault.Busy", name, err, loginErr)
		}
		if got, want := asked > before, name == "its own"; got != want {
			t.Errorf("network %s: issuer asked = %t, want %t", name, got, want)
		}
	}
}
