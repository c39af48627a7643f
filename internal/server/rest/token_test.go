package rest_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

// shownToken is the part of a token that tests compare.
type shownToken struct {
	ID         string `json:"token_id"`
	Token      string
	Role       string
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	IssuedBy   string     `json:"issued_by"`
}

func (f *tenantFixture) owner() *client {
	f.t.Helper()
	return f.holder(identity.Grant{Name: "owner", Role: identity.RoleOwner})
}

func TestAdministratorsCannotRaiseThemselves(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("raise")
	owner := f.owner()
	var person struct {
		ID string `json:"operator_id"`
	}
	owner.send("POST", "/api/v1/operators", object{"name": "Olive", "role_set": "owner"}).wants(t, 201).into(t, &person)
	at := func(c *client, more ...string) string {
		return "/api/v1/tokens/" + c.id.String() + strings.Join(more, "")
	}
	other := f.holder(identity.Grant{Name: "other admin", Role: identity.RoleAdmin})
	issuer := object{"issuer": "https://login.example.org", "audience": "a-" + f.id.String()}

	for name, v := range map[string]visit{
		"an owner's token":         {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner"}, 403},
		"an admin's token":         {"POST", "/api/v1/tokens", object{"name": "x", "role": "admin"}, 403},
		"an operator as the owner": {"POST", "/api/v1/tokens", object{"name": "x", "role": "operator", "operator_id": person.ID}, 403},
		"the owner's secret":       {"POST", at(owner, "/rotate"), nil, 403},
		"another admin's secret":   {"POST", at(other, "/rotate"), nil, 403},
		"its own end":              {"POST", at(f.admin, "/rotate"), object{"expires_in": "1m"}, 403},
		"the owner away":           {"DELETE", at(owner), nil, 403},
		"another admin away":       {"DELETE", at(other), nil, 403},
		"an owner":                 {"POST", "/api/v1/operators", object{"name": "x", "role_set": "owner"}, 403},
		"an admin":                 {"POST", "/api/v1/operators", object{"name": "x", "role_set": "admin"}, 403},
		"the owner's login":        {"PUT", "/api/v1/operators/" + person.ID, object{"name": "x", "issuer": "https://i", "subject": "me"}, 403},
		"the owner's Slack":        {"PUT", "/api/v1/operators/" + person.ID, object{"name": "Olive", "role_set": "owner", "slack_team": "T", "slack_user": "U"}, 403},
		"who vouches for people":   {"PUT", "/api/v1/identity-providers/x", issuer, 403},
		"an operator's token":      {"POST", "/api/v1/tokens", object{"name": "x", "role": "operator"}, 201},
	} {
		if a := f.admin.send(v.method, v.path, v.body); a.status != v.want {
			t.Errorf("an administrator makes %s = %d, want %d: %s", name, a.status, v.want, a.body)
		}
	}

	owner.send("GET", "/api/v1/me", nil).wants(t, 200)
	owner.send("DELETE", at(owner), nil).wants(t, 409)
	f.admin.send("POST", at(f.admin, "/rotate"), nil).wants(t, 200)
	f.admin.send("GET", "/api/v1/me", nil).wants(t, 401)
}

func TestNarrowedTokensHandOutNoMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("narrow")
	narrow := f.holder(identity.Grant{Name: "n", Role: identity.RoleOwner, Scopes: []identity.Scope{identity.TokensManage}, Tools: []string{"mail:*"}})
	wide, spare := f.holder(identity.Grant{Name: "w", Role: identity.RoleAgent}), f.holder(identity.Grant{Name: "s", Role: identity.RoleAgent})

	for name, v := range map[string]visit{
		"all scopes":      {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "tools": []string{"mail:*"}}, 403},
		"another scope":   {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "tools": []string{"mail:*"}, "scopes": []string{"policy:write"}}, 403},
		"all tools":       {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "scopes": []string{"tokens:manage"}}, 403},
		"no scope":        {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "scopes": []string{}}, 400},
		"a scope unknown": {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "scopes": []string{"*"}}, 400},
		"a wider secret":  {"POST", "/api/v1/tokens/" + wide.id.String() + "/rotate", nil, 403},
		"as much":         {"POST", "/api/v1/tokens", object{"name": "x", "role": "owner", "tools": []string{"mail:send"}, "scopes": []string{"tokens:manage"}}, 201},
		"a wider one off": {"DELETE", "/api/v1/tokens/" + spare.id.String(), nil, 204},
		"its own secret":  {"POST", "/api/v1/tokens/" + narrow.id.String() + "/rotate", object{"overlap": "1m"}, 200},
	} {
		if a := narrow.send(v.method, v.path, v.body); a.status != v.want {
			t.Errorf("%s = %d, want %d: %s", name, a.status, v.want, a.body)
		}
	}
}

// A token is narrowed at once, never widened, and each of two narrowings at the
// same time is within the other or refused.
func TestTokensAreNarrowedToWhatTheyHave(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, foreign := h.tenant("narrowed"), h.tenant("elsewhere")
	owner, employee := f.owner(), uuid.NewString()
	g := identity.Grant{
		Name: "a", Role: identity.RoleAgent, Scopes: []identity.Scope{identity.ActionsRead, identity.ActionsPropose}, Tools: []string{"mail:*"},
		Names: identity.Names{Automations: []string{"news*"}, ExternalIDPrefix: "mail/"}, TTL: time.Hour,
	}
	agent, broad := f.holder(g), f.holder(identity.Grant{Name: "b", Role: identity.RoleAgent})
	at := func(c *client) string { return "/api/v1/tokens/" + c.id.String() + "/narrow" }
	named := func(id string) object {
		p := proposal("read", object{})
		p["external_id"] = id
		return p
	}

	for name, tt := range map[string]struct {
		body    object
		pointer string
	}{
		"another scope":      {object{"scopes": []string{"actions:read", "policy:read"}}, "/scopes/1"},
		"all tools":          {object{"tools": []string{"mail:read", "*"}}, "/tools/1"},
		"another source":     {object{"tools": []string{"mall:read"}}, "/tools/0"},
		"all automations":    {object{"automations": []string{"*"}}, "/automations/0"},
		"a shorter prefix":   {object{"automations": []string{"new*"}}, "/automations/0"},
		"an employee":        {object{"employees": []string{employee}}, "/employees/0"},
		"a session":          {object{"sessions": []string{"chat"}}, "/sessions/0"},
		"other external ids": {object{"external_id_prefix": "mai"}, "/external_id_prefix"},
		"a later end":        {object{"expires_in": "2h"}, "/expires_in"},
		"tools and a scope":  {object{"tools": []string{"mail:read"}, "scopes": []string{"audit:read"}}, "/scopes/0"},
	} {
		if a := f.admin.send("POST", at(agent), tt.body).wants(t, 400); !strings.Contains(string(a.body), `"`+tt.pointer+`"`) {
			t.Errorf("%s: %s, want the pointer %s", name, a.body, tt.pointer)
		}
	}
	for _, body := range []object{{}, {"scopes": []string{}}, {"tools": []string{}}, {"tools": []string{"m*l:x"}}, {"expires_in": "0s"}, {"role": "viewer"}} {
		f.admin.send("POST", at(agent), body).wants(t, 400)
	}
	agent.send("POST", "/api/v1/actions", named("mail/1")).wants(t, 201)

	var is struct {
		Scopes, Tools, Automations []string
		Prefix                     string    `json:"external_id_prefix"`
		ExpiresAt                  time.Time `json:"expires_at"`
	}
	body := object{"tools": []string{"mail:write"}, "automations": []string{"newsletter"}, "external_id_prefix": "mail/out/", "expires_in": "10m"}
	f.admin.send("POST", at(agent), body).wants(t, 200).into(t, &is)
	if !slices.Equal(is.Tools, []string{"mail:write"}) || !slices.Equal(is.Automations, []string{"newsletter"}) || is.Prefix != "mail/out/" ||
		len(is.Scopes) != 2 || time.Until(is.ExpiresAt) > 10*time.Minute {
		t.Errorf("narrowed: %+v", is)
	}
	f.admin.send("POST", at(broad), object{"scopes": []string{"actions:propose", "actions:read"}}).wants(t, 200)

	var answers [2]answer
	var errs [2]error
	var sending sync.WaitGroup
	for i, scope := range []string{"actions:propose", "actions:read"} {
		sending.Go(func() {
			answers[i], errs[i] = f.admin.trySend(t.Context(), "POST", at(broad), object{"scopes": []string{scope}})
		})
	}
	sending.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if a, b := answers[0].status, answers[1].status; a+b != 200+400 {
		t.Errorf("two narrowings at the same time = %d and %d, want one of them refused", a, b)
	}

	// Rotation does not restore the former end.
	var turned struct {
		ExpiresAt time.Time `json:"expires_at"`
	}
	owner.send("POST", "/api/v1/tokens/"+agent.id.String()+"/rotate", object{"overlap": "1m"}).wants(t, 200).into(t, &turned)
	if !turned.ExpiresAt.Equal(is.ExpiresAt) {
		t.Errorf("after a rotation it ends at %s, want %s", turned.ExpiresAt, is.ExpiresAt)
	}
	agent.send("POST", "/api/v1/actions", named("mail/out/2")).wants(t, 400)

	f.operator.send("POST", at(broad), object{"expires_in": "1m"}).wants(t, 403)
	f.admin.send("POST", at(owner), object{"expires_in": "1m"}).wants(t, 403)
	foreign.admin.send("POST", at(broad), object{"expires_in": "1m"}).wants(t, 404)
	owner.send("POST", at(owner), object{"scopes": []string{"actions:read"}}).wants(t, 409)
	f.admin.send("DELETE", "/api/v1/tokens/"+broad.id.String(), nil).wants(t, 204)
	f.admin.send("POST", at(broad), object{"expires_in": "1m"}).wants(t, 404)
	f.admin.send("POST", at(f.admin), object{"scopes": []string{"tokens:manage", "catalog:read"}}).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/modes/mail:*", object{"mode": "deny"}).wants(t, 403)
}

// Bulk requests change dead letters of all tools.
func TestATokenForSomeToolsSendsNothingAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("bulk")
	narrow := f.holder(identity.Grant{Name: "n", Role: identity.RoleOperator, Tools: []string{"mail:*"}})
	wide := f.holder(identity.Grant{Name: "w", Role: identity.RoleOperator})

	for operation, body := range map[string]object{
		"replay":  {"filter": object{}, "dry_run": true},
		"discard": {"filter": object{}, "reason": "old", "dry_run": true},
	} {
		for who, want := range map[*client]int{narrow: 403, wide: 200} {
			if a := who.send("POST", "/api/v1/dead-letters/"+operation, body); a.status != want {
				t.Errorf("%s = %d, want %d: %s", operation, a.status, want, a.body)
			}
		}
	}
}

// Secrets are shown once, to the caller who requested them, and nowhere else.
func TestSecretsShowNowhere(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f := h.tenant("secrets")
	owner, issuer := f.owner(), identitytest.New(t)
	owner.send("PUT", "/api/v1/identity-providers/acme", object{"issuer": issuer.URL(), "audience": "api-" + f.id.String(), "default_role": "viewer"}).wants(t, 200)
	var made, turned shownToken
	owner.send("POST", "/api/v1/tokens", object{"name": "x", "role": "agent"}).wants(t, 201).into(t, &made)
	owner.send("POST", "/api/v1/tokens/"+made.ID+"/rotate", object{"overlap": "1m", "expires_in": "1m"}).wants(t, 200).into(t, &turned)
	if turned.ID != made.ID || turned.Token == made.Token || turned.ExpiresAt == nil {
		t.Errorf("a rotation answers %+v", turned)
	}
	signed, bad := issuer.Token("api-"+f.id.String(), time.Now(), nil), issuer.Token("other", time.Now(), nil)
	(&client{fixture: h, token: signed}).send("GET", "/api/v1/me", nil).wants(t, 200)
	(&client{fixture: h, token: bad}).send("GET", "/api/v1/me", nil).wants(t, 401)

	var record string
	if err := h.db.QueryRow(t.Context(), "SELECT string_agg(items::text, ' ') FROM events").Scan(&record); err != nil {
		t.Fatal(err)
	}
	said := string(owner.send("GET", "/api/v1/tokens?all=true", nil).wants(t, 200).body) + record +
		string(owner.send("GET", "/api/v1/operators", nil).wants(t, 200).body) + h.logs.String()
	for _, secret := range []string{made.Token, turned.Token, owner.token, strings.Split(signed, ".")[2], strings.Split(bad, ".")[2]} {
		if strings.Contains(said, secret) {
			t.Error("a secret shows in a list, in the record or in the log")
		}
	}
	if !strings.Contains(said, `token `+made.ID+` rotated`) {
		t.Error("the record does not tell of the rotation")
	}
}

func TestListOfTokensHasPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("pages")
	var made shownToken
	f.admin.send("POST", "/api/v1/tokens", object{"name": "newest", "role": "agent"}).wants(t, 201).into(t, &made)
	f.admin.send("DELETE", "/api/v1/tokens/"+f.other.id.String(), nil).wants(t, 204)

	for query, want := range map[string]int{"": 4, "&all=true": 5} {
		var ids []string
		cursor := ""
		for {
			var page struct {
				Items      []shownToken
				NextCursor string `json:"next_cursor"`
			}
			f.admin.send("GET", "/api/v1/tokens?limit=2"+query+cursor, nil).wants(t, 200).into(t, &page)
			for _, it := range page.Items {
				ids = append(ids, it.ID)
				if it.ID == made.ID && it.IssuedBy != f.admin.named("admin") {
					t.Errorf("the token was issued by %q, want admin", it.IssuedBy)
				}
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + page.NextCursor
		}
		if len(ids) != want || ids[0] != made.ID {
			t.Errorf("tokens%s lists %v, want %d, the newest first", query, ids, want)
		}
	}
}

func TestUseOfATokenIsSeenInTheList(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("use")
	f.agent.send("GET", "/api/v1/me", nil).wants(t, 200)

	if err := f.api.Backend().Auth.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	var page struct{ Items []shownToken }
	f.admin.send("GET", "/api/v1/tokens", nil).wants(t, 200).into(t, &page)
	for _, it := range page.Items {
		if used := it.LastUsedAt != nil; used != (it.ID == f.agent.id.String()) {
			t.Errorf("the token %s of the role %s was used: %t", it.ID, it.Role, used)
		}
	}
}

func TestPeopleAuthenticateWithIssuerTokens(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f := h.tenant("people")
	owner, issuer := f.owner(), identitytest.New(t)
	ana := &client{fixture: h, token: issuer.Token("api-"+f.id.String(), time.Now(), identitytest.Claims{"name": "Ana"})}
	ana.send("GET", "/api/v1/me", nil).wants(t, 401)
	owner.send("PUT", "/api/v1/identity-providers/acme", object{"issuer": issuer.URL(), "audience": "api-" + f.id.String(), "default_role": "operator"}).wants(t, 200)

	issuer.SetDown(true)
	if a := ana.send("GET", "/api/v1/me", nil).wants(t, 503); a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	f.agent.send("GET", "/api/v1/me", nil).wants(t, 200)
	issuer.SetDown(false)
	bo := &client{fixture: h, token: identitytest.New(t).Token("api-"+f.id.String(), time.Now(), nil)}
	bo.send("GET", "/api/v1/me", nil).wants(t, 401)

	// The issuer is asked again after ten seconds; another server asks
	// immediately.
	second := newFixtureWith(t, h.db, rest.Config{})
	ana.fixture, bo.fixture = second, second
	var me struct {
		Name       string
		Role       string
		TokenID    string `json:"token_id"`
		OperatorID string `json:"operator_id"`
	}
	ana.send("GET", "/api/v1/me", nil).wants(t, 200).into(t, &me)
	if me.Name != "Ana" || me.Role != "operator" || me.TokenID != "" || uuid.Validate(me.OperatorID) != nil {
		t.Errorf("Ana is %+v", me)
	}
	id := f.agent.propose("write")
	ana.send("POST", path(id, "/approve"), nil).wants(t, 200)
	ana.send("GET", "/api/v1/tokens", nil).wants(t, 403)

	root := &client{fixture: second, token: owner.token}
	root.send("PUT", "/api/v1/operators/"+me.OperatorID, object{"name": "Ana", "issuer": issuer.URL(), "subject": "ana", "disabled": true}).wants(t, 200)
	if got := ana.send("GET", "/api/v1/me", nil).wants(t, http.StatusForbidden).problem(t).Detail; got != "the account is disabled here" {
		t.Errorf("a disabled person is told %q", got)
	}
}
