package login_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/login"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// realIssuer starts oidc-provider and returns its address; the test is skipped
// where it is not installed.
func realIssuer(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join("testdata", "npm", "node_modules")); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm")
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "npm", "issuer.mjs"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = cmd.Wait() // or the test's context has
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var line struct{ Issuer string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Issuer != "" {
			return line.Issuer
		}
	}
	t.Fatal("oidc-provider does not start")
	return ""
}

// visitor goes through the pages of the issuer as somebody: it says who it is,
// and agrees.
func visitor(t *testing.T, name string) func(string) {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return func(address string) {
		wg.Go(func() {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Error(err)
				return
			}
			client := &http.Client{Jar: jar}
			answer, err := client.Get(address)
			for _, form := range []url.Values{{"prompt": {"login"}, "login": {name}, "password": {"any"}}, {"prompt": {"consent"}}} {
				if err != nil {
					t.Error(err)
					return
				}
				at := answer.Request.URL
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if !strings.HasPrefix(at.Path, "/interaction/") {
					t.Errorf("the issuer shows %s with status %d, want a page that asks", at.Path, answer.StatusCode)
					return
				}
				answer, err = client.PostForm(at.String(), form)
			}
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
		})
	}
}

// A real issuer, its pages, and what it signs, from the login in the browser
// to the person in the database, through a renewal and the end of it.
func TestLoginAtARealIssuer(t *testing.T) {
	t.Parallel()
	issuer, db := realIssuer(t), dbtest.Tx(t)
	var tenant envelope.TenantID
	if err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		tenant, err = identity.NewTenant(t.Context(), tx, "acme")
		if err != nil {
			return err
		}
		return identity.AllowAudience(t.Context(), tx, tenant, issuer, "cli", true)
	}); err != nil {
		t.Fatal(err)
	}
	if err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
		return identity.PutProvider(t.Context(), tx, tenant, identity.Provider{
			ID: "real", Issuer: issuer, Audience: "cli", RoleClaim: "groups", Roles: map[string]identity.Role{"ops": identity.RoleOperator}, AllowedDomains: []string{"acme.com"},
		})
	}); err != nil {
		t.Fatal(err)
	}
	auth, store := identity.NewAuthenticator(db, safehttp.Loopback()...), login.NewStore(filepath.Join(t.TempDir(), "c"))
	begin := func(name string) login.Session {
		t.Helper()
		is, err := login.Begin(t.Context(), login.Config{Server: server, Issuer: issuer, ClientID: "cli", Show: visitor(t, name)})
		if err != nil {
			t.Fatal(err)
		}
		return is
	}

	is := begin("ana")
	who, err := auth.Authenticate(t.Context(), is.Token, time.Now())
	if err != nil || who.Role != identity.RoleOperator || who.Name != "ana by name" || who.Tenant != tenant {
		t.Fatalf("ana is %+v (%v)", who, err)
	}
	if is.Refresh == "" {
		t.Fatal("the issuer gave nothing to renew the login with")
	}
	if err := store.Save(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	next, err := store.Fresh(t.Context(), server, is.ExpiresAt)
	if err != nil || next.Refresh == is.Refresh {
		t.Fatalf("the login is not renewed: %v", err)
	}
	again, err := auth.Authenticate(t.Context(), next.Token, time.Now())
	if err != nil || !again.Equal(who) {
		t.Errorf("after a renewal ana is %+v (%v), want %+v", again, err, who)
	}
	if _, err := identity.NewAuthenticator(db, safehttp.Loopback()...).Authenticate(t.Context(), is.Token, is.ExpiresAt.Add(2*time.Minute)); !errors.Is(err, identity.ErrToken) {
		t.Errorf("a token that has expired = %v, want ErrToken", err)
	}
	if err := login.Revoke(t.Context(), next); err != nil {
		t.Errorf("Revoke = %v", err)
	}
	if _, err := store.Fresh(t.Context(), server, next.ExpiresAt); !errors.Is(err, login.ErrOver) {
		t.Errorf("a login that was revoked is renewed: %v", err)
	}
	eve := begin("eve").Token
	whole, half := strings.LastIndexByte(eve, '.'), strings.LastIndexByte(next.Token, '.')
	if _, err := auth.Authenticate(t.Context(), next.Token[:half]+eve[whole:], time.Now()); !errors.Is(err, identity.ErrToken) {
		t.Errorf("a token with the signature of another = %v, want ErrToken", err)
	}
	if _, err := auth.Authenticate(t.Context(), eve, time.Now()); !errors.Is(err, fault.Denied) {
		t.Errorf("somebody without a verified e-mail address = %v, want fault.Denied", err)
	}
}
