package mcpserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
)

// logIn makes a source with an address, logs in, and lists and calls its tools. The
// authorization server sends browsers back without asking anybody.
func (f *loginFixture) logIn(ctx context.Context, id, address string, o login.Options) error {
	f.source(id, address)
	src, ok := f.settings().Source(id)
	if !ok {
		return errors.New("no source")
	}
	logins, by := f.logins(), uuid.New()
	begun, err := logins.Begin(ctx, f.tenant, by, src, o, time.Now())
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, begun.URL, nil)
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	back, err := answer.Location()
	if err != nil {
		return fmt.Errorf("GET %s = %d: %w", begun.URL, answer.StatusCode, err)
	}
	made, _, err := logins.Finish(ctx, f.tenant, by, src, back.Query(), time.Now())
	if err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	err = postgres.InTx(ctx, f.db, postgres.API(f.tenant), func(tx pgx.Tx) error { return logins.Put(ctx, tx, f.tenant, made, "ada", true) })
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	worker := f.workers(1, id)[0]
	tools, err := worker.List(ctx)
	if err != nil || len(tools) == 0 {
		return fmt.Errorf("list = %d tools, %w", len(tools), err)
	}
	out := worker.Execute(ctx, source.Call{Key: uuid.NewString(), Tool: tools[0].Name, Effect: envelope.EffectOnce, Attempt: 1})
	if out.Code == source.CodeLoginLost {
		return source.ErrLoginLost // it needs more scopes
	}
	if out.Kind != source.KindDone {
		return fmt.Errorf("call = %s %s", out.Kind, out.Code)
	}
	return nil
}

// TestConformanceOfLogins runs the scenarios of the conformance suite of MCP for clients
// that log in, through the code that sources use.
func TestConformanceOfLogins(t *testing.T) {
	t.Parallel()
	command := script(t, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	f := newLoginFixture(t)
	var made atomic.Int64
	var ended sync.Map // a scenario to the text of its last error
	driver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var known struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		_ = json.Unmarshal([]byte(cmp.Or(r.FormValue("context"), "{}")), &known)
		id, options := fmt.Sprintf("s%d", made.Add(1)), login.Options{
			Redirect: "http://localhost:3000/callback", Document: "https://conformance-test.local/client-metadata.json",
			ClientID: known.ID, ClientSecret: known.Secret,
		}
		err := f.logIn(r.Context(), id, r.FormValue("url"), options)
		if errors.Is(err, source.ErrLoginLost) { // a person logs in again
			err = f.logIn(r.Context(), id, r.FormValue("url"), options)
		}
		ended.Store(r.FormValue("scenario"), fmt.Sprint(err))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(driver.Close)
	client := func(name string) string {
		suite := exec.CommandContext(t.Context(), command[0], "--import", script(t, "node20.mjs")[1], command[1], "client",
			"--command", strings.Join(append(script(t, "drive.mjs"), driver.URL), " "), "--suite", name)
		text, err := suite.CombinedOutput()
		return fmt.Sprintf("%s\n%v", text, err)
	}

	text := client("auth")
	if n := strings.Count(text, "✓ auth/"); n != 14 || strings.Contains(text, "✗ auth/") {
		t.Errorf("%d scenarios pass, want all 14:\n%s", n, text)
	}
	// The other suites have scenarios that are not of logins, which fail.
	for suite, scenarios := range map[string]map[string]bool{ // whether the login has to succeed
		"backcompat": {"2025-03-26-oauth-metadata-backcompat": true, "2025-03-26-oauth-endpoint-fallback": true},
		"draft": {
			"resource-mismatch": false, "offline-access-scope": true, "offline-access-not-supported": true, "authorization-server-migration": true,
			"iss-supported": true, "iss-not-advertised": true, "iss-supported-missing": false, "iss-wrong-issuer": false, "iss-unexpected": false,
			"iss-normalized": false, "metadata-issuer-mismatch": false,
		},
	} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			text := client(suite)
			for scenario, succeeds := range scenarios {
				err, _ := ended.Load("auth/" + scenario)
				if !strings.Contains(text, "✓ auth/"+scenario+":") || succeeds != (err == "<nil>") {
					t.Errorf("%s: the login ended with %v\n%s", scenario, err, text)
				}
			}
		})
	}
}
