package access_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestArgumentsOfTagsAreMail shows the arguments of a tagged message to every role.
func TestArgumentsOfTagsAreMail(t *testing.T) {
	t.Parallel()
	const args = `{"phones":["+49 30 1234567"]}`
	mail := []identity.Scope{identity.MailRead}
	for name, test := range map[string]struct {
		by    identity.Principal
		shown bool
	}{
		"an operator with the scope":      {identity.Principal{Role: identity.RoleOperator, Scopes: mail}, true},
		"an operator without it":          {identity.Principal{Role: identity.RoleOperator, Scopes: []identity.Scope{identity.ActionsRead}}, false},
		"a token for some tools":          {identity.Principal{Role: identity.RoleOperator, Scopes: mail, Tools: []string{"dav:*"}}, false},
		"a viewer":                        {identity.Principal{Role: identity.RoleViewer, Scopes: mail}, false},
		"an agent":                        {identity.Principal{Role: identity.RoleAgent, Scopes: mail}, false},
		"an administrator with the scope": {identity.Principal{Role: identity.RoleAdmin, Scopes: mail}, true},
	} {
		got := access.ArgsOf(test.by, "triage:tag:0", json.RawMessage(args))

		if strings.Contains(string(got), "1234567") != test.shown {
			t.Errorf("%s sees %s, want the number: %t", name, got, test.shown)
		}
		if other := access.ArgsOf(test.by, "mine", json.RawMessage(args)); string(other) != args {
			t.Errorf("%s sees %s of an action of another name", name, other)
		}
	}
}
