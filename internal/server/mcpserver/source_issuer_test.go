package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
)

// realSource starts oidc-provider with a source of its own, and returns its address.
func realSource(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir := filepath.Join("..", "..", "cli", "login", "testdata", "npm")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Skip("oidc-provider is missing: run make npm")
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "source.mjs"))
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

var (
	formAction = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)
	formInput  = regexp.MustCompile(`<input[^>]*type="hidden"[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// walk goes through the pages of an issuer as ana, who agrees, and returns where the
// browser ends: at a page without a form, or at a path that is not the issuer's.
func walk(t *testing.T, issuer, address string) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var left *url.URL
	browser := http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), issuer) {
			left = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	answer, err := browser.Get(address)
	for range 6 {
		if err != nil {
			t.Fatal(err)
		}
		at := answer.Request.URL
		page, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		action := formAction.FindSubmatch(page)
		if left != nil || action == nil {
			if left == nil && answer.StatusCode != 200 {
				t.Fatalf("%s = %d %s", at, answer.StatusCode, page)
			}
			return left
		}
		form := url.Values{"login": {"ana"}, "password": {"any"}}
		for _, input := range formInput.FindAllSubmatch(page, -1) {
			form.Set(html.UnescapeString(string(input[1])), html.UnescapeString(string(input[2])))
		}
		if form.Has("user_code") {
			form.Set("confirm", "yes")
		}
		to, parseErr := at.Parse(html.UnescapeString(string(action[1])))
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		answer, err = browser.PostForm(to.String(), form)
	}
	t.Fatalf("the issuer asks again and again for %s", address)
	return nil
}

// TestSourcesLogInAtARealIssuer logs in at oidc-provider: in a browser, with a client that
// registered itself, and on another device. A worker renews the token.
func TestSourcesLogInAtARealIssuer(t *testing.T) {
	t.Parallel()
	issuer := realSource(t)
	f := newLoginFixture(t)
	for id, device := range map[string]bool{"browser": false, "device": true} {
		f.source(id, issuer+"/mcp")
		begun := f.begin(0, id, object{"device": device})
		var body object
		if device {
			if begun.UserCode == nil || begun.IntervalSeconds <= 0 {
				t.Fatalf("begun = %+v", begun)
			}
			body = object{"state": begun.State}
			var waits wire.FinishedSourceLogin
			if status := f.send(1, f.admin, "POST", "/api/v1/sources/"+id+"/login/finish", body, &waits); status != 200 || waits.Done {
				t.Fatalf("before ana decides = %d %+v", status, waits)
			}
			walk(t, issuer, begun.URL)
		} else {
			body = object{"answer": f.answer(1, walk(t, issuer, begun.URL))}
		}
		var done wire.FinishedSourceLogin
		if status := f.send(1, f.admin, "POST", "/api/v1/sources/"+id+"/login/finish", body, &done); status != 200 || !done.Done {
			t.Fatalf("%s: finish = %d %+v", id, status, done)
		}

		tokens := f.logins().Of(f.tenant, id, issuer+"/mcp")
		first, err := tokens.Token(t.Context(), "")
		if err != nil || whoIs(t, issuer, first) != "ana" {
			t.Fatalf("%s: the token is of %q, %v", id, whoIs(t, issuer, first), err)
		}
		for range 2 { // the refresh token rotates
			f.exec("UPDATE source_logins SET renewed_at = now() - interval '1 hour'")
			next, err := tokens.Token(t.Context(), first)
			if err != nil || next == first || whoIs(t, issuer, next) != "ana" {
				t.Fatalf("%s: the renewed token is of %q, %v", id, whoIs(t, issuer, next), err)
			}
			first = next
		}
		if l := f.shown(id).Login; l == nil || l.Issuer != issuer || !strings.Contains(l.Scope, "tools") {
			t.Errorf("%s: login = %+v", id, l)
		}
	}
	f.hasNoTokens()
}

// whoIs asks the source whose token it is; "" for nobody's.
func whoIs(t *testing.T, issuer, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	name, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(name)
}
