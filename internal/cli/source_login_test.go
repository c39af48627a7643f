package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// protectedSource starts an MCP server with one tool that wants the token "good", and its
// authorization server, whose devices log in at once.
func protectedSource(t *testing.T) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "crm", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "find"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	tools := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/mcp":
			if r.Header.Get("Authorization") != "Bearer good" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			tools.ServeHTTP(w, r)
			return
		case "/.well-known/oauth-authorization-server":
			answer = map[string]any{
				"issuer": web.URL, "authorization_endpoint": web.URL + "/a", "token_endpoint": web.URL + "/t", "registration_endpoint": web.URL + "/r",
				"device_authorization_endpoint": web.URL + "/d", "code_challenge_methods_supported": []string{"S256"},
			}
		case "/r":
			answer = map[string]any{"client_id": "c"}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
		case "/d":
			answer = map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": web.URL + "/enter", "expires_in": 60, "interval": 0.01}
		case "/t":
			answer = map[string]any{"access_token": "good", "token_type": "Bearer", "expires_in": 3600, "scope": "find"}
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestSourcesLogIn logs in to a source with the command line: with the line that a browser
// shows, and on a device. The source lists its tools after that.
func TestSourcesLogIn(t *testing.T) {
	t.Parallel()
	d := open(t)
	at := protectedSource(t)
	admin := func(args ...string) result {
		t.Helper()
		return d.run(t.Context(), d.environment.Tokens().Admin, "", args...)
	}
	d.want(admin("source", "set", "crm", "--config", `{"transport":"http","url":"`+at+`/mcp"}`, "--on-lost-login", "fail"), command.ExitOK, "could not be listed", "401")

	begun := d.want(admin("source", "login", "crm", "--scope", "find"), command.ExitFailed, "no answer", "Then paste the line")
	page, err := url.Parse(regexp.MustCompile(`http\S+/a\?\S+`).FindString(begun.out + begun.err))
	if err != nil || page.Query().Get("scope") != "find" || page.Query().Get("resource") != at+"/mcp" {
		t.Fatalf("the page to log in is %s", page)
	}
	line := login.Answer(url.Values{"state": {page.Query().Get("state")}, "code": {"c"}})
	d.want(admin("source", "login", "crm", "--answer", line), command.ExitOK, "logged in to source crm: ok, 1 tools")
	d.want(admin("source", "login", "crm", "--answer", line), command.ExitFailed, "no such login")
	d.want(admin("source", "show", "crm"), command.ExitOK, "at "+at+" by ", ", for find", "fail")

	if _, err := dbtest.Connect(t, d.database).Exec(t.Context(), "UPDATE source_logins SET lost_at = now(), lost_reason = 'because'"); err != nil {
		t.Fatal(err)
	}
	d.want(admin("source", "list"), command.ExitOK, "login lost: because; countersign source login crm")
	device := d.want(admin("source", "login", "crm", "--device"), command.ExitOK, "enter the code ABCD", "logged in to source crm: ok, 1 tools")
	if !strings.Contains(device.out+device.err, at+"/enter") {
		t.Errorf("no address for the device: %s", device.err)
	}
	d.want(admin("source", "logout", "crm"), command.ExitOK, "removed the login of source crm")
	d.want(admin("source", "logout", "crm"), command.ExitFailed, "no login")
}
