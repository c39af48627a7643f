package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"

	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Every operation with a JSON body checks it before anything decodes it or a
// schema sees it: the error is not that of the schema.
func TestEveryBodyIsReadStrictly(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("strict")
	contract, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	visits := f.visits()
	owner := f.holder(identity.Grant{Name: "owner", Role: identity.RoleOwner})
	checked := 0
	for _, rt := range route.Access() {
		op, err := contract.Operation(rt.Operation)
		if err != nil {
			t.Fatal(err)
		}
		if op.Media != openapi.JSON {
			continue
		}
		checked++
		v := visits[rt.Operation]
		text, err := json.Marshal(v.body)
		if err != nil {
			t.Fatal(err)
		}
		if v.body == nil {
			text = []byte(`{}`)
		}
		rest := strings.TrimPrefix(string(text[1:]), "}")
		for rule, field := range map[string]string{
			"number":        `"n":[1e999999,-1e-999999,1e309,-2e-324]`,
			"duplicate_key": `"a":{"b":{"c":1,"c":2}}`,
			"encoding":      `"t":"\ud800"`,
			"nul":           `"t":"\u0000"`,
			"depth":         `"d":` + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		} {
			body := "{" + field
			if rest != "" {
				body += "," + rest
			} else {
				body += "}"
			}
			got := owner.send(v.method, v.path, body).wants(t, 400)
			if !contains(got.body, `"rule":"`+rule+`"`) {
				t.Errorf("%s with %s = %s, want the rule %s", rt.Operation, field[:min(len(field), 40)], got.body, rule)
			}
		}
	}
	if checked < 40 {
		t.Errorf("checked %d operations, want all that have a body", checked)
	}
}

func TestSourceListsOmittedTools(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("left-out")

	f.list("mail", append([]source.Tool{
		{Name: "remote", InputSchema: json.RawMessage(`{"$ref":"https://elsewhere.example/s"}`)},
	}, mailTools...)...)

	got := f.operator.send("GET", "/api/v1/sources", nil).wants(t, 200)
	if !contains(got.body, `"left_out":1`) || !contains(got.body, `{"name":"remote","reason":"its input schema refers to another document, `) {
		t.Errorf("sources = %s, want the tool that was left out and the reason", got.body)
	}
}

func TestToolsWithUnsupportedPatternsAreKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("patterns")

	f.list("mail", append([]source.Tool{
		{Name: "invite", InputSchema: json.RawMessage(`{"properties":{"to":{"pattern":"^(?!\\.)[a-z.]+@[a-z.]+$"}}}`)},
		{Name: "react", InputSchema: json.RawMessage(`{"properties":{"with":{"pattern":"\\p{Emoji}"},"to":{"type":"string"}}}`)},
	}, mailTools...)...)

	got := f.operator.send("GET", "/api/v1/sources", nil).wants(t, 200)
	if !contains(got.body, `"left_out":0`) || !contains(got.body, `"unchecked_tools":[{"name":"react","patterns":["\"\\\\p{Emoji}\""]}]`) {
		t.Errorf("sources = %s, want no tool left out, and react unchecked", got.body)
	}
	for body, status := range map[string]int{
		`{"inputs":{"to":"ada@example.org"},"dry_run":true}`:  200,
		`{"inputs":{"to":".ada@example.org"},"dry_run":true}`: 400,
	} {
		f.agent.send("POST", "/api/v1/tools/mail:invite", body).wants(t, status)
	}
	f.agent.send("POST", "/api/v1/tools/mail:react", `{"inputs":{"with":"no emoji"},"dry_run":true}`).wants(t, 200)
	f.agent.send("POST", "/api/v1/tools/mail:react", `{"inputs":{"with":"no emoji","to":7},"dry_run":true}`).wants(t, 400)
}

// The answer to arguments that break a schema everywhere has a bounded size.
func TestErrorsOfArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("bounded")
	f.list("mail", append([]source.Tool{{
		Name: "many", InputSchema: json.RawMessage(`{"properties":{"all":{"items":{"anyOf":[{"type":"string"},{"required":["a","b","c"]}]}}}}`),
	}}, mailTools...)...)
	long := strings.Repeat("x", 1000)

	got := f.agent.send("POST", "/api/v1/tools/mail:many", `{"inputs":{"all":[`+strings.Repeat(`{"`+long+`":1},`, 200)+`{}]}}`).wants(t, 400)

	if n := strings.Count(string(got.body), `"pointer"`); n == 0 || n > 33 {
		t.Errorf("%d field errors, want at most 33", n)
	}
	if len(got.body) > 16<<10 {
		t.Errorf("an answer of %d bytes, want a small one", len(got.body))
	}
}
