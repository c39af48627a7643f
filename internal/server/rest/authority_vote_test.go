package rest_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// voter is a person with the token that the person uses now.
type voter struct {
	*client
	person uuid.UUID
	// decides reports whether the person may decide; voted whether the person
	// agreed to the current version of the action, and void whether that vote no
	// longer counts because of the token.
	decides, voted, void bool
}

// counts reports whether the vote of a person counts.
func (v *voter) counts() bool { return v.voted && v.decides && !v.void }

// voteSequences is the number of random sequences of votes.
const voteSequences = 12

// People vote, edit, are disabled, lose their role, and have tokens revoked, in any
// order. An action that needs three votes is approved only with three voters who may
// decide, and shows their number.
func TestVotesCountWhileTheirVotersMayDecide(t *testing.T) {
	t.Parallel()
	const needed = 3
	h := newFixture(t)
	type step struct {
		who int
		do  string
	}
	sequence := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 3).Draw(t, "who"), sampled(t, "approve", "approve", "approve", "approve", "approve", "edit", "disable", "demote", "restore", "revoke", "replace")}
	}), 12, 16)
	ends := make(map[string]int)
	for seed := range voteSequences {
		f := h.tenant(fmt.Sprintf("votes-%d", seed))
		owner := f.owner()
		owner.send("PUT", "/api/v1/reviews/*", object{"approvals": needed}).wants(t, 200)
		action := f.agent.propose("write")
		voters := make([]*voter, 4)
		for i := range voters {
			voters[i] = &voter{person: f.somebody(fmt.Sprint("voter ", i), identity.RoleOperator), decides: true}
			voters[i].client = f.holder(identity.Grant{Name: "voter", Role: identity.RoleOperator, Operator: voters[i].person})
		}
		set := func(v *voter, role string, disabled bool) {
			owner.send("PUT", "/api/v1/operators/"+v.person.String(), object{"name": "voter", "role_set": role, "disabled": disabled}).wants(t, 200)
			v.decides = role == "operator" && !disabled
		}
		var calls []string
		for n, s := range sequence.Example(seed) {
			v := voters[s.who]
			calls = append(calls, fmt.Sprint(s.do, " ", s.who))
			switch s.do {
			case "approve":
				again := v.voted && v.void
				if a := v.send("POST", path(action, "/approve"), nil, ifMatch(owner.pendingAction(action).Decision.ETag)...); a.status == http.StatusOK {
					if again { // another round
						for _, other := range voters {
							other.voted = false
						}
					}
					v.voted, v.void = true, false
				}
			case "edit":
				if a := v.send("POST", path(action, "/edit"), object{"args": object{"n": n}}); a.status == http.StatusOK {
					for _, other := range voters {
						other.voted = false
					}
				}
			case "disable":
				set(v, "operator", true)
			case "demote":
				set(v, "viewer", false)
			case "restore":
				set(v, "operator", false)
			case "revoke":
				if a := owner.send("DELETE", "/api/v1/tokens/"+v.id.String(), nil); a.status == http.StatusNoContent {
					v.void = v.void || v.voted
				}
			case "replace":
				if a := owner.send("POST", "/api/v1/tokens", object{"name": "voter", "role": "operator", "operator_id": v.person}); a.status == http.StatusCreated {
					var more shownToken
					a.into(t, &more)
					owner.send("DELETE", "/api/v1/tokens/"+v.id.String(), nil)
					v.client, v.void = &client{fixture: h, token: more.Token, id: identity.TokenID(uuid.MustParse(more.ID))}, v.void || v.voted
				}
			}
			given := 0
			for _, other := range voters {
				if other.counts() {
					given++
				}
			}
			got := owner.pendingAction(action)
			if waits := got.Phase == "pending"; waits != (given < needed) || waits && got.Decision.Given != given {
				t.Errorf("sequence %d: it is %s and shows %d of %d after %s; the votes of %d count", seed, got.Phase, got.Decision.Given, needed, strings.Join(calls, ", "), given)
			}
			if ends[got.Phase]++; got.Phase != "pending" {
				break
			}
		}
	}
	if ends["approved"] == 0 || ends["approved"] == voteSequences {
		t.Errorf("sequences end %v, want some approved and some not", ends)
	}
}

// A person who has seen the secret of an agent's token can propose with it.
func TestNobodyApprovesTheirAgentsProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("agents")
	owner := f.owner()
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	below := f.holder(identity.Grant{Name: "no policy:write", Role: identity.RoleAdmin, Scopes: rest})
	narrow := f.holder(identity.Grant{Name: "an owner without policy:write", Role: identity.RoleOwner, Scopes: rest})
	person := f.holder(identity.Grant{Name: "ana's", Role: identity.RoleAdmin, Operator: f.somebody("ana", identity.RoleAdmin)})
	somebody := f.somebody("bo", identity.RoleOperator)
	made := func(by *client, more object) *client {
		body := object{"name": "agent", "role": "agent", "scopes": []string{"actions:propose", "actions:read"}}
		maps.Copy(body, more)
		var token shownToken
		by.send("POST", "/api/v1/tokens", body).wants(t, 201).into(t, &token)
		return &client{fixture: f.fixture, token: token.Token, id: identity.TokenID(uuid.MustParse(token.ID))}
	}
	more := func(by *client) *client {
		var token shownToken
		by.send("POST", "/api/v1/tokens", object{"name": "more", "role": "operator", "scopes": []string{"approvals:decide", "actions:read"}}).wants(t, 201).into(t, &token)
		return &client{fixture: f.fixture, token: token.Token}
	}
	rotated := made(owner, nil)
	var fresh shownToken
	f.admin.send("POST", "/api/v1/tokens/"+rotated.id.String()+"/rotate", nil).wants(t, 200).into(t, &fresh)
	rotated.token = fresh.Token

	for name, tt := range map[string]struct {
		agent, by *client
		may       bool
	}{
		"its maker":                               {made(f.admin, nil), f.admin, false},
		"its maker, below policy:write":           {made(below, nil), below, false},
		"its maker, an owner below":               {made(narrow, nil), narrow, false},
		"its maker, with another token":           {made(below, nil), more(below), false},
		"a person":                                {made(person, nil), person, false},
		"its maker, of an agent of somebody else": {made(f.admin, object{"operator_id": somebody}), f.admin, false},
		"who rotated it":                          {rotated, f.admin, false},
		"another administrator":                   {made(f.admin, nil), below, true},
		"an operator":                             {made(f.admin, nil), f.operator, true},
		"an owner":                                {made(owner, nil), owner, true},
	} {
		id := tt.agent.propose("write")
		var inbox struct {
			Items []struct {
				ActionID  string `json:"action_id"`
				MayDecide bool   `json:"may_decide"`
			}
		}
		tt.by.send("GET", "/api/v1/inbox", nil).wants(t, 200).into(t, &inbox)
		for _, it := range inbox.Items {
			if it.ActionID == id && it.MayDecide != tt.may {
				t.Errorf("%s: the inbox shows may_decide = %t, want %t", name, it.MayDecide, tt.may)
			}
		}
		if a := tt.by.send("POST", path(id, "/approve"), nil); (a.status == http.StatusOK) != tt.may {
			t.Errorf("%s approves = %d, want that they may: %t: %s", name, a.status, tt.may, a.body)
		}
		owner.send("POST", path(id, "/deny"), nil)
	}
}

// A token that acts as another person is issued only to callers with all rights
// of that person's role.
func TestTokenOfAnotherPersonNeedsTheirRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("others")
	owner := f.owner()
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	below := f.holder(identity.Grant{Name: "an owner without policy:write", Role: identity.RoleOwner, Scopes: rest})
	somebody := f.somebody("bo", identity.RoleOperator)
	scopes := []identity.Scope{identity.ApprovalsDecide}
	mine := func(by *client) identity.TokenID {
		var token shownToken
		by.send("POST", "/api/v1/tokens", object{"name": "mine", "role": "operator", "scopes": scopes}).wants(t, 201).into(t, &token)
		return identity.TokenID(uuid.MustParse(token.ID))
	}
	for name, tt := range map[string]struct {
		by    *client
		token identity.TokenID
		want  int
	}{
		"one's own":                  {below, mine(below), 200},
		"one's own, by an admin":     {f.admin, mine(f.admin), 200},
		"another maker's":            {f.admin, mine(owner), 200},
		"another maker's, below":     {below, mine(f.admin), 403},
		"that of a person":           {below, f.holder(identity.Grant{Name: "bo", Role: identity.RoleOperator, Operator: somebody, Scopes: scopes}).id, 403},
		"one that stands for itself": {below, f.holder(identity.Grant{Name: "bo", Role: identity.RoleOperator, Scopes: scopes}).id, 403},
		"another's, by an owner":     {owner, mine(f.admin), 200},
	} {
		if a := tt.by.send("POST", "/api/v1/tokens/"+tt.token.String()+"/rotate", nil); a.status != tt.want {
			t.Errorf("a new secret of %s = %d, want %d: %s", name, a.status, tt.want, a.body)
		}
	}
	if a := below.send("POST", "/api/v1/tokens", object{"name": "bo", "role": "operator", "scopes": scopes, "operator_id": somebody}); a.status != 403 {
		t.Errorf("a token that acts as another person = %d, want 403: %s", a.status, a.body)
	}
}

// A disabled person decides by no token, also by none that names no operator, and
// no grant of theirs holds.
func TestDisabledPersonHasNoTokensAndGrants(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("disabled")
	owner := f.owner()
	person := f.somebody("ana", identity.RoleAdmin)
	ana := f.holder(identity.Grant{Name: "ana's", Role: identity.RoleAdmin, Operator: person})
	var token shownToken
	ana.send("POST", "/api/v1/tokens", object{"name": "more", "role": "operator"}).wants(t, 201).into(t, &token)
	more := &client{fixture: f.fixture, token: token.Token}
	more.send("POST", path(f.mail(object{"to": "ana"}), "/approve"), object{"always": object{"pins": []string{"/to"}}}).wants(t, 200)
	like := []object{proposal("write", object{"to": "ana"})}
	if got := f.agent.held(like); got[0] != 0 {
		t.Fatalf("what a grant covers is held to %v", got)
	}
	set := func(role string, disabled bool) {
		owner.send("PUT", "/api/v1/operators/"+person.String(), object{"name": "ana", "role_set": role, "disabled": disabled}).wants(t, 200)
		like[0]["external_id"] = uuid.NewString()
	}

	for name, tt := range map[string]struct {
		role     string
		disabled bool
		status   int
		held     int
	}{
		"disabled": {"admin", true, 401, 1},
		"a viewer": {"viewer", false, 403, 1},
		"restored": {"operator", false, 200, 0},
	} {
		set(tt.role, tt.disabled)
		if a := more.send("POST", path(f.mail(object{"to": "bo"}), "/approve"), nil); a.status != tt.status {
			t.Errorf("%s: a vote by a token that the person made = %d, want %d: %s", name, a.status, tt.status, a.body)
		}
		if got := f.agent.held(like); got[0] != tt.held {
			t.Errorf("%s: what the person's grant covers is held to %d, want %d", name, got[0], tt.held)
		}
	}
}

// The migration finds out who was shown a secret by who issued the token.
func TestTokensOfEarlierVersionsHaveAHolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("earlier")
	rest := slices.DeleteFunc(identity.Scopes(), func(s identity.Scope) bool { return s == identity.PolicyWrite })
	ana := f.somebody("ana", identity.RoleAdmin)
	admin := f.holder(identity.Grant{Name: "by (token of nobody)", Role: identity.RoleAdmin})
	var more shownToken
	admin.send("POST", "/api/v1/tokens", object{"name": "more", "role": "operator"}).wants(t, 201).into(t, &more)
	for _, by := range []*client{
		admin, f.owner(), f.holder(identity.Grant{Name: "ana's", Role: identity.RoleAdmin, Operator: ana}),
		f.holder(identity.Grant{Name: "below", Role: identity.RoleOwner, Scopes: rest}),
	} {
		by.send("POST", "/api/v1/tokens", object{"name": "agent", "role": "agent", "scopes": []string{"actions:propose"}}).wants(t, 201)
	}
	shown := func() (text string) {
		t.Helper()
		const query = "SELECT string_agg(name || ' ' || coalesce(issued_by, '') || ' ' || shown_to::text, E'\n' ORDER BY token_id) FROM api_tokens WHERE tenant_id = $1"
		if err := f.db.QueryRow(t.Context(), query, f.id.String()).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := shown()
	migration, err := os.ReadFile("../../../db/migrations/00013_authority.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, rest13, _ := strings.Cut(string(migration), "\nUPDATE api_tokens")
	update, _, _ := strings.Cut(rest13, ";")

	for _, statement := range []string{"UPDATE api_tokens SET shown_to = '{}'", "UPDATE api_tokens" + update} {
		if _, err := f.db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(shown(), "\n")); diff != "" || strings.Count(want, "{}") == strings.Count(want, "\n")+1 {
		t.Errorf("tokens and who was shown them (-issued +migrated):\n%s", diff)
	}
}

func TestAVoteCountsAsLongAsItsTokenMayDecideAboutTheTool(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("credential")
	owner := f.owner()
	owner.send("PUT", "/api/v1/reviews/*", object{"approvals": 2}).wants(t, 200)
	person := f.somebody("ana", identity.RoleOperator)
	for name, tt := range map[string]struct {
		operator uuid.UUID
		set      string // the resulting state of the token
		given    int
	}{
		"nothing":                     {uuid.Nil, "name = 'another'", 1},
		"for the tool":                {uuid.Nil, "tools = '{bank:*,mail:write}'", 1},
		"for the source":              {uuid.Nil, "tools = '{mail:*}'", 1},
		"for other tools":             {uuid.Nil, "tools = '{mail:read,bank:*}'", 0},
		"with the scope":              {uuid.Nil, "scopes = '{approvals:decide}'", 1},
		"without the scope":           {uuid.Nil, "scopes = '{actions:read}'", 0},
		"a viewer's":                  {uuid.Nil, "role = 'viewer'", 0},
		"revoked":                     {uuid.Nil, "revoked_at = now()", 0},
		"a person's, revoked":         {person, "revoked_at = now()", 0},
		"expired":                     {uuid.Nil, "expires_at = now() - interval '1 minute'", 0},
		"a person's, expired":         {person, "expires_at = now() - interval '1 minute'", 1},
		"a person's, for other tools": {person, "tools = '{bank:*}'", 0},
	} {
		voter := f.holder(identity.Grant{Name: "voter", Role: identity.RoleOperator, Operator: tt.operator})
		id := f.mail(object{"to": name})
		voter.send("POST", path(id, "/approve"), nil).wants(t, 200)

		if _, err := f.db.Exec(t.Context(), "UPDATE api_tokens SET "+tt.set+" WHERE token_id = $1", voter.id.String()); err != nil {
			t.Fatal(err)
		}

		if got := owner.pendingAction(id).Decision.Given; got != tt.given {
			t.Errorf("a token that is now %s: %d votes count, want %d", name, got, tt.given)
		}
	}
}
