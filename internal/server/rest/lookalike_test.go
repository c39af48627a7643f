package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestLookalikes walks the roles, and another tenant, which knows none of the names.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("lookalikes")
	others := f.fixture.tenant("lookalikes-others")
	propose := func(f *tenantFixture, to ...string) string {
		return f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": strings.Join(to, ", ")})).wants(t, 201).action(t).Envelope.ActionID
	}
	known := propose(f, "ana@northwind.example", `"claimed@hooli.example" <bo@initech.example>`)
	f.admin.send("POST", path(known, "/approve"), nil).wants(t, 200)
	denied := propose(f, "ana@umbrella.example")
	f.admin.send("POST", path(denied, "/deny"), nil).wants(t, 200)
	f.admin.send("POST", "/api/v1/do-not-contact", object{"entries": []object{{"kind": "email", "value": "stop@globex.example"}}}).wants(t, 200)
	f.indexWords()
	f.indexWords()
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOperator, Tools: []string{"mail:*"}})
	to := []string{"ana@northvvind.example", "ana@n0rthwind.example", "bo@hoo1i.example", "x@umbre11a.example", "stоp@globex.example", "a@аpple.com", "ana@northwind.example"}
	id, foreign := propose(f, to...), propose(others, to...)
	const (
		hidden = "looks like an address, which is known; differs in "
		apple  = "looks like apple.com, which is well known; differs in а (Cyrillic)"
	)

	for name, test := range map[string]struct {
		by   *client
		id   string
		want []string
	}{
		"an operator": {f.operator, id, []string{
			"looks like northwind.example, which is known; differs in “vv” for “w”", "looks like northwind.example, which is known; differs in “0” for “o”",
			"looks like stop@globex.example, which is on the do-not-contact list; differs in о (Cyrillic)", apple,
		}},
		"a viewer": {viewer, id, []string{
			hidden + "“vv” for “w”", hidden + "“0” for “o”", "looks like an address, which is on the do-not-contact list; differs in о (Cyrillic)", apple,
		}},
		"a token for some tools": {narrow, id, []string{
			hidden + "“vv” for “w”", hidden + "“0” for “o”", "looks like an address, which is on the do-not-contact list; differs in о (Cyrillic)", apple,
		}},
		"an agent":       {f.agent, id, nil},
		"another tenant": {others.operator, foreign, []string{"mixes alphabets: о (Cyrillic)", apple}},
	} {
		texts := func(all []wire.Lookalike) (texts []string) {
			for _, l := range all {
				texts = append(texts, l.Text)
				if l.Like != "" && !strings.Contains(l.Text, l.Like) {
					t.Errorf("%s reads the known name %q beside %q", name, l.Like, l.Text)
				}
			}
			return texts
		}
		var one wire.Action
		test.by.send("GET", path(test.id), nil).wants(t, 200).into(t, &one)
		if got := texts(one.Lookalikes); !slices.Equal(got, test.want) {
			t.Errorf("%s reads of the action %q, want %q", name, got, test.want)
		}
		if test.want == nil {
			continue
		}
		for _, query := range []string{"", "view=summary"} {
			for _, it := range test.by.inbox(query).Items {
				if got := texts(it.Lookalikes); it.ActionID.String() == test.id && !slices.Equal(got, test.want) {
					t.Errorf("%s reads in the inbox %q, want %q", name, got, test.want)
				}
			}
			var page wire.Page[wire.Action]
			test.by.send("GET", "/api/v1/actions?"+query, nil).wants(t, 200).into(t, &page)
			if got := texts(page.Items[0].Lookalikes); !slices.Equal(got, test.want) {
				t.Errorf("%s reads in the list %q, want %q", name, got, test.want)
			}
		}
	}

	// Many addresses hide none behind them, of the call or of another one in the list.
	crowd := []string{}
	for i := range 900 {
		crowd = append(crowd, fmt.Sprintf("p%d@company-%03d.example", i, i))
	}
	crowded := propose(f, append(crowd, "ana@n0rthwind.example")...)
	find := func(of []wire.Lookalike) bool {
		return slices.ContainsFunc(of, func(l wire.Lookalike) bool {
			return l.Pointer == "/to" && l.Value == "ana@n0rthwind.example" && l.Like == "northwind.example"
		})
	}
	var one wire.Action
	if f.operator.send("GET", path(crowded), nil).wants(t, 200).into(t, &one); !find(one.Lookalikes) {
		t.Errorf("behind 900 addresses the look-alikes are %v", one.Lookalikes)
	}
	for _, it := range f.operator.inbox("").Items {
		if (it.ActionID.String() == id || it.ActionID.String() == crowded) && !find(it.Lookalikes) {
			t.Errorf("among 900 addresses the look-alikes of %s are %v", it.ActionID, it.Lookalikes)
		}
	}

	if _, err := f.db.Exec(t.Context(), "DELETE FROM countersign_data.actions WHERE tenant_id = $1 AND action_id = $2", f.id.String(), known); err != nil {
		t.Fatal(err)
	}
	for _, l := range f.operator.inbox("").Items[0].Lookalikes {
		if strings.Contains(l.Text, "northwind") {
			t.Errorf("a name stays known after its action was deleted: %q", l.Text)
		}
	}
}
