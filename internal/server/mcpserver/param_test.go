package mcpserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// TestACallWithoutProgressIsOneAnswer compares the answers to a call by whether its client
// asked for progress.
func TestACallWithoutProgressIsOneAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Wait: time.Millisecond}).tenant("acme")
	for meta, want := range map[string]string{"": "application/json", `"progressToken":1,`: "text/event-stream", `"progressToken":"a",`: "text/event-stream"} {
		a := f.send("POST", f.agent.Token.Text(), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+nameWrite+`","arguments":{"to":"ada"},"_meta":{`+meta+
			`"io.modelcontextprotocol/protocolVersion":"`+withoutSessions+`","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Protocol-Version", withoutSessions, "Mcp-Method", "tools/call", "Mcp-Name", nameWrite)
		if a.status != http.StatusOK || a.header.Get("Content-Type") != want || !strings.Contains(a.body, `"id":7`) || !strings.Contains(a.body, `"status":"pending"`) {
			t.Errorf("with _meta %s: %d %s %s, want %s and a pending action", meta, a.status, a.header.Get("Content-Type"), a.body, want)
		}
	}
}

// Proxies route by the headers, so a call whose arguments differ from them must
// be rejected.
func TestHeadersRepeatTheArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Wait: time.Millisecond}).tenant("acme")
	tool := source.Tool{Name: "read", Hints: source.Hints{ReadOnly: true}, InputSchema: json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"free":{"type":"string"},
		"in":{"type":"object","properties":{"deep":{"type":"boolean","x-mcp-header":"Deep"}}}}}`)}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, f.id, "box", []source.Tool{tool})
	})
	f.allow("box:*")
	const secret = "eu-" + marker
	call := func(args string, header ...string) answer {
		t.Helper()
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + withoutSessions + `","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		return f.send("POST", f.agent.Token.Text(), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+nameRead+`","arguments":`+args+`,`+meta+`}}`,
			append([]string{"Mcp-Protocol-Version", withoutSessions, "Mcp-Method", "tools/call", "Mcp-Name", nameRead}, header...)...)
	}

	for name, c := range map[string]struct {
		args   string
		header []string
		want   int
	}{
		"no argument that is repeated": {`{"free":"x"}`, nil, 200},
		"the same":                     {`{"region":"eu","n":3,"in":{"deep":true}}`, []string{"Mcp-Param-Region", "eu", "Mcp-Param-N", "3", "Mcp-Param-Deep", "true"}, 200},
		"the same in base64":           {`{"region":"é"}`, []string{"Mcp-Param-Region", "=?base64?" + base64.StdEncoding.EncodeToString([]byte("é")) + "?="}, 200},
		"a number in another form":     {`{"n":3}`, []string{"Mcp-Param-N", "3.0"}, 200},
		"null":                         {`{"region":null}`, nil, 200},
		"another text":                 {`{"region":"` + secret + `"}`, []string{"Mcp-Param-Region", "us"}, 400},
		"another number":               {`{"n":4}`, []string{"Mcp-Param-N", "3"}, 400},
		"another one deep inside":      {`{"in":{"deep":false}}`, []string{"Mcp-Param-Deep", "true"}, 400},
		"a header that is missing":     {`{"region":"` + secret + `"}`, nil, 400},
		"an argument that is missing":  {`{}`, []string{"Mcp-Param-Region", "eu"}, 400},
		"base64 that is none":          {`{"region":"a"}`, []string{"Mcp-Param-Region", "=?base64?!?="}, 400},
	} {
		before := len(f.actions())
		a := call(c.args, c.header...)
		if a.status != c.want || c.want == http.StatusBadRequest && (!strings.Contains(a.body, `"code":-32020`) || !strings.Contains(a.body, `"id":7`)) {
			t.Errorf("%s = %d %s, want %d", name, a.status, a.body, c.want)
		}
		if after := len(f.actions()); c.want == http.StatusBadRequest && (after != before || strings.Contains(a.body, marker)) {
			t.Errorf("%s: %d actions after %d; %s", name, after, before, a.body)
		}
	}
}
