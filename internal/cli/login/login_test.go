package login_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/countersign-dev/countersign/internal/cli/login"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

const server = "https://countersign.example.org"

// browser opens an address as a person would who agrees, and changes where the
// issuer sends it back to.
func browser(t *testing.T, change func(back *url.URL)) func(string) {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return func(address string) {
		wg.Go(func() {
			client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
				change(r.URL)
				return nil
			}}
			answer, err := client.Get(address)
			if err != nil {
				return // the login was over before
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		})
	}
}

func begin(t *testing.T, issuer *identitytest.Issuer, change func(*url.URL)) (login.Session, error) {
	t.Helper()
	return login.Begin(t.Context(), login.Config{Server: server, Issuer: issuer.URL(), ClientID: "cli", Show: browser(t, change)})
}

func as(*url.URL) {}

func TestLoginIsKeptAndRenewed(t *testing.T) {
	t.Parallel()
	issuer := identitytest.New(t)
	store := login.NewStore(filepath.Join(t.TempDir(), "deep", "down"))

	is, err := begin(t, issuer, as)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), is); err != nil {
		t.Fatal(err)
	}

	same, err := store.Fresh(t.Context(), server, time.Now())
	if err != nil || same.Token != is.Token {
		t.Errorf("a login that is fresh was renewed, or is lost: %v", err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	tokens := map[string]bool{}
	for range 5 { // the issuer takes what renews a login only once
		wg.Go(func() {
			next, err := store.Fresh(t.Context(), server, time.Now().Add(4*time.Minute+10*time.Second))
			if err != nil {
				t.Errorf("renew: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			tokens[next.Refresh] = true
		})
	}
	wg.Wait()
	kept, err := store.Load(server)
	if err != nil || kept.Refresh == is.Refresh || kept.Server != server || kept.Issuer != issuer.URL() || kept.ClientID != "cli" {
		t.Errorf("after renewing it holds %v (%v)", kept, err)
	}
	if _, err := store.Load("https://else.example.org"); !errors.Is(err, login.ErrNone) {
		t.Errorf("Load of another server = %v, want ErrNone", err)
	}
	if err := login.Revoke(t.Context(), kept); err != nil || len(issuer.Revoked()) != 1 || issuer.Revoked()[0] != kept.Refresh {
		t.Errorf("Revoke = %v, and the issuer heard of %d tokens", err, len(issuer.Revoked()))
	}
	if _, err := store.Fresh(t.Context(), server, time.Now().Add(time.Hour)); !errors.Is(err, login.ErrOver) || strings.Contains(err.Error(), "MARKER") {
		t.Errorf("after Revoke Fresh = %v, want ErrOver and nothing of what the issuer quotes", err)
	}
}

func TestOnlyTheOwnerReadsLogins(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "c")
	store := login.NewStore(dir)
	secret := login.Session{Server: server, Token: "eyJ-secret", Refresh: "secret-too", ExpiresAt: time.Now().Add(time.Hour)}
	if err := store.Save(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "logins.json"): 0o600, filepath.Join(dir, "logins.lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v (%v), want %v", path, info.Mode().Perm(), err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "logins-*")); len(left) > 0 {
		t.Errorf("drafts were left: %v", left)
	}
	var text strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", slog.Any("login", secret))
	if shown := fmt.Sprint(secret) + fmt.Sprintf("%v", &secret) + text.String(); strings.Contains(shown, "secret") {
		t.Errorf("a login shows its secrets: %s", shown)
	}
	if err := os.Chmod(filepath.Join(dir, "logins.json"), 0o644); err != nil { // readable by others, which the test expects to be refused
		t.Fatal(err)
	}
	if _, err := store.Load(server); err == nil || !strings.Contains(err.Error(), "other users can read") {
		t.Errorf("Load of a file that others can read = %v", err)
	}
}

func TestDeleteForgetsOneLogin(t *testing.T) {
	t.Parallel()
	store := login.NewStore(filepath.Join(t.TempDir(), "c"))
	if err := store.Delete(t.Context(), server); err != nil {
		t.Errorf("Delete of nothing = %v", err)
	}
	for _, at := range []string{server, "https://else.example.org"} {
		if err := store.Save(t.Context(), login.Session{Server: at, Token: "t"}); err != nil {
			t.Fatal(err)
		}
	}

	if err := store.Delete(t.Context(), server); err != nil {
		t.Fatal(err)
	}

	if _, err := store.Load(server); !errors.Is(err, login.ErrNone) {
		t.Errorf("after Delete Load = %v, want ErrNone", err)
	}
	if _, err := store.Load("https://else.example.org"); err != nil {
		t.Errorf("the other login is lost: %v", err)
	}
}

func TestLoginThatIsRefused(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(url.Values){
		"another issuer answers": func(q url.Values) { q.Set("iss", "https://evil.example.org") },
		"the person says no": func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
		},
		"the issuer quotes": func(q url.Values) {
			q.Del("code")
			q.Set("error", "<script>MARKER</script>")
		},
		"no code":      func(q url.Values) { q.Del("code") },
		"another code": func(q url.Values) { q.Set("code", "guessed") },
	} {
		issuer := identitytest.New(t)
		_, err := begin(t, issuer, func(back *url.URL) {
			q := back.Query()
			change(q)
			back.RawQuery = q.Encode()
		})
		if err == nil || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: Begin = %v, want an error without what was quoted", name, err)
		}
	}
}

// Another page that finds the port gets nowhere, and does not end the login.
func TestLoginHeedsOnlyItsOwnAnswer(t *testing.T) {
	t.Parallel()
	issuer := identitytest.New(t)

	_, err := begin(t, issuer, func(back *url.URL) {
		for _, query := range []string{"", "?code=x", "?code=x&state=guessed", "?error=access_denied"} {
			answer, err := http.Get("http://" + back.Host + back.Path + query)
			if err != nil || answer.StatusCode != http.StatusBadRequest {
				t.Errorf("GET %s%s = %v (%v), want 400", back.Path, query, answer, err)
				continue
			}
			_ = answer.Body.Close()
		}
	})

	if err != nil {
		t.Errorf("Begin = %v", err)
	}
}

func TestLoginRefusesATokenOfAnotherLogin(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]identitytest.Claims{
		"another nonce":    {"nonce": "other"},
		"another audience": {"aud": "other"},
		"another issuer":   {"iss": "https://evil.example.org"},
		"an old one":       {"exp": 1},
	} {
		issuer := identitytest.New(t)
		issuer.Force(person)
		if _, err := begin(t, issuer, as); err == nil {
			t.Errorf("%s: Begin takes it", name)
		}
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	issuer := identitytest.New(t)
	ctx, cancel := context.WithCancel(t.Context())

	_, err := login.Begin(ctx, login.Config{Server: server, Issuer: issuer.URL(), ClientID: "cli", Show: func(string) { cancel() }})

	if !errors.Is(err, context.Canceled) {
		t.Errorf("Begin = %v, want context.Canceled", err)
	}
}

func TestLoginAsksForPKCEAndAFreshStateEachTime(t *testing.T) {
	t.Parallel()
	issuer := identitytest.New(t)
	seen := map[string]bool{}

	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		_, _ = login.Begin(ctx, login.Config{Server: server, Issuer: issuer.URL(), ClientID: "cli", Show: func(at string) {
			defer cancel()
			u, err := url.Parse(at)
			if err != nil {
				t.Error(err)
				return
			}
			q := u.Query()
			if q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || !strings.HasPrefix(q.Get("redirect_uri"), "http://127.0.0.1:") ||
				!strings.Contains(q.Get("scope"), oidc.ScopeOpenID) {
				t.Errorf("the login is asked for with %v", q)
			}
			for _, name := range []string{"state", "nonce", "code_challenge"} {
				if v := q.Get(name); len(v) != 43 || seen[v] {
					t.Errorf("%s is %q, want another 256 bits", name, v)
				}
				seen[q.Get(name)] = true
			}
		}})
		cancel()
	}
}

func TestLoginOnlyWhereNobodyReadsAlong(t *testing.T) {
	t.Parallel()

	_, err := login.Begin(t.Context(), login.Config{Server: server, Issuer: "http://login.example.org", ClientID: "cli", Show: func(string) { t.Error("it went on") }})

	if err == nil {
		t.Error("Begin takes an issuer at an http address elsewhere")
	}
}
