package mcpmail_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
)

// answering serves tools without annotations that answer with text, as servers
// from npm do, and returns the address.
func answering(t *testing.T, tools map[string]func(args map[string]any) string) string {
	t.Helper()
	served := sdk.NewServer(&sdk.Implementation{Name: "mail", Version: "1"}, nil)
	for name, answer := range tools {
		served.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var args map[string]any
			err := json.Unmarshal(r.Params.Arguments, &args)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer(args)}}}, err
		})
	}
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return served }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(at.Close)
	return at.URL
}

// gmail answers as Gmail's API does: listings contain only ids, newest first.
func gmail(t *testing.T, queries *[]string) *mcpmail.Reader {
	t.Helper()
	messages := map[string]string{
		"b": `{"id":"b","labelIds":["INBOX","UNREAD","IMPORTANT"],"internalDate":"1772727780000","sizeEstimate":900,"payload":{"mimeType":"multipart/alternative",
			"headers":[{"name":"From","value":"Ann Example <ann@example.com>"},{"name":"To","value":"mara@tallis.example"},{"name":"Message-ID","value":"<b@example.com>"},
			{"name":"Subject","value":"Grüße\r\nFrom: boss@tallis.example"},{"name":"Authentication-Results","value":"mx.google.com; dmarc=pass"},{"name":"Received","value":"by x"}],
			"parts":[{"mimeType":"text/html","body":{"data":"<p>markup</p>"}},{"mimeType":"text/plain","body":{"data":"Shall we meet at noon?"}}]}}`,
		"a": `{"id":"a","labelIds":["INBOX","STARRED"],"internalDate":"1772700000000","sizeEstimate":300,"payload":{"mimeType":"text/plain",
			"headers":[{"name":"From","value":"news@garden.example"},{"name":"List-Id","value":"<weekly.garden.example>"}],"body":{"data":"Ten plants."}}}`,
	}
	url := answering(t, map[string]func(map[string]any) string{
		"list_messages": func(args map[string]any) string {
			query, _ := args["q"].(string)
			*queries = append(*queries, query)
			if args["pageToken"] != nil || strings.Contains(query, "in:sent") {
				return `{"resultSizeEstimate":0}`
			}
			return `{"messages":[{"id":"b","threadId":"b"},{"id":"a","threadId":"a"}],"nextPageToken":"2","resultSizeEstimate":2}`
		},
		"get_message": func(args map[string]any) string {
			if text, ok := messages[args["id"].(string)]; ok {
				return text
			}
			return `{"error":"Tool execution failed: Requested entity was not found."}`
		},
		"send_message": func(map[string]any) string { t.Error("a message was sent"); return `{}` },
	})
	return open(t, mcpmail.Config{Name: "gmail", URL: url, Profile: profile(t, "gmail", nil), Networks: safehttp.Loopback(), Quota: quota.New(quota.Provider{})})
}

func TestGmailAnswers(t *testing.T) {
	t.Parallel()
	var queries []string
	r := gmail(t, &queries)

	got, err := changes(t, r, nil)
	if err != nil || len(got.New) != 2 {
		t.Fatalf("%+v, %v; want two messages", got, err)
	}
	older, b := got.New[0], got.New[1]
	if older.Key != "a" || !slices.Equal(older.Flags, []string{`\Flagged`, `\Seen`}) || !slices.Equal(b.Flags, []string{"$Important"}) ||
		!b.Received.Equal(time.UnixMilli(1772727780000)) || b.Size != 900 {
		t.Errorf("items are %+v and %+v", older, b)
	}
	gone := mailbox.Item{Location: mailbox.Location{Folder: "INBOX", Key: "gone"}}
	err = r.Read(t.Context(), []mailbox.Item{b, gone}, func(item mailbox.Item, raw []byte, err error) error {
		if item.Key == "gone" {
			wantError(t, "a message that went", err, mailbox.ErrGone)
			return nil
		}
		m := message.Parse(raw)
		if !item.Built || len(m.From) != 1 || m.From[0].Addr != "ann@example.com" || !strings.HasPrefix(m.Subject, "Grüße") || m.Text != "Shall we meet at noon?" {
			t.Errorf("built %q, from %v, subject %q, text %q", raw, m.From, m.Subject, m.Text)
		}
		if m.Get("Authentication-Results") != "" || m.Get("Received") != "" {
			t.Errorf("what proves something is in %q", raw)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := changes(t, r, got.Next); err != nil {
		t.Error(err)
	}
	page, _, err := r.Older(t.Context(), "SENT", nil, 5)
	if err != nil || len(page) != 0 {
		t.Errorf("sent mail: %+v, %v", page, err)
	}
	if !slices.Contains(queries, "in:inbox after:1772724180") || !slices.Contains(queries, "in:sent") {
		t.Errorf("queries were %q", queries)
	}
}

// TestNamesOfTheTable compares the contract's list of kinds with the table, and
// checks that profiles only have known names.
func TestNamesOfTheTable(t *testing.T) {
	t.Parallel()
	contract, err := os.ReadFile("../../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range mcpmail.Servers() {
		p := profile(t, server, nil)
		if p.Provider().Name == "" || len(p.Provider().Limits) == 0 {
			t.Errorf("%s has the provider %+v", server, p.Provider())
		}
		if !strings.Contains(string(contract), "- "+server+"\n") && !strings.Contains(string(contract), strings.Join(mcpmail.Servers(), ", ")) {
			t.Errorf("schemas/openapi.yaml does not have the kind of server %s", server)
		}
	}
	if _, err := mcpmail.ProfileOf("absent", nil); err == nil || !strings.Contains(err.Error(), "generic, gmail, mcp-mail-server") {
		t.Errorf("ProfileOf(absent) = %v, want an error with those there are", err)
	}
}

// TestGenericServerWithOtherNames reads a server with names from the
// account, which returns the time of a message only when it is read.
func TestGenericServerWithOtherNames(t *testing.T) {
	t.Parallel()
	url := answering(t, map[string]func(map[string]any) string{})
	c := mcpmail.Config{Name: "other", URL: url, Networks: safehttp.Loopback(), Quota: quota.New(quota.Provider{})}
	c.Profile = profile(t, mcpmail.Generic, map[string]string{"tool.list": "search", "tool.read": "fetch", "tool.folders": "", "tool.changes": "", "list": "/"})
	_, err := open(t, c).Folders(t.Context())
	wantError(t, "tools that are not there", err, mailbox.ErrUnsupported)
	c.URL = answering(t, map[string]func(map[string]any) string{"search": func(map[string]any) string { return "[]" }, "fetch": func(map[string]any) string { return "{}" }})
	_, err = open(t, c).Folders(t.Context())
	wantError(t, "tools of which the server does not say that they read", err, mailbox.ErrDenied)
}
