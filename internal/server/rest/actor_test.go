package rest_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestTokensOfOneNameAreDistinctActors lets two people of one name edit, vote,
// decide and configure: every place that shows the actor distinguishes them.
func TestTokensOfOneNameAreDistinctActors(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("namesakes")
	f.admin.send("PUT", "/api/v1/reviews/*", object{"approvals": 2}).wants(t, 200)
	first := f.holder(identity.Grant{Name: "demo operator", Role: identity.RoleAdmin})
	second := f.holder(identity.Grant{Name: "demo operator", Role: identity.RoleAdmin})
	operator := uuid.New()
	f.exec("INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, 'demo operator', 'admin')", f.id.String(), operator.String())
	f.exec("UPDATE api_tokens SET operator_id = $1 WHERE token_id = $2", operator.String(), second.id.String())
	one, two := first.named("demo operator"), string(envelope.NewActor("demo operator", uuid.UUID(second.id), operator))

	id := f.agent.propose("write")
	first.send("POST", path(id, "/edit"), object{"args": object{"n": 1}}).wants(t, 200)
	seen := f.admin.pendingAction(id)
	f.admin.send("POST", path(id, "/approve"), nil, ifMatch(seen.Decision.ETag)...).wants(t, 200)
	second.send("POST", path(id, "/approve"), nil, ifMatch(f.admin.pendingAction(id).Decision.ETag)...).wants(t, 200)
	second.send("PUT", "/api/v1/policy/modes/mail:read", object{"mode": "allow"}).wants(t, 200)

	for what, query := range map[string]string{
		one + " edited":                    "SELECT actor FROM events WHERE kind = 'edited'",
		one + " is in the edits":           "SELECT edits -> 0 ->> 'by' FROM approvals",
		one + " edited last":               "SELECT edited_by FROM approvals",
		two + " voted":                     "SELECT actor FROM votes WHERE actor LIKE 'demo%'",
		two + " decided, says the event":   "SELECT actor FROM events WHERE kind = 'decided'",
		two + " decided, says the action":  "SELECT decided_by FROM actions",
		two + " set the mode":              "SELECT updated_by FROM policy_modes",
		f.agent.named("agent") + " begins": "SELECT actor FROM events WHERE kind = 'proposed'",
	} {
		var got string
		if err := f.db.QueryRow(t.Context(), query).Scan(&got); err != nil || !strings.HasPrefix(what, got+" ") {
			t.Errorf("%s = %q, %v; want that %s", query, got, err, what)
		}
	}
	f.checkpoint() // events are exported once no older transaction is open
	export := string(f.admin.send("GET", "/api/v1/audit/events", nil).wants(t, 200).body)
	log := string(f.admin.send("GET", "/api/v1/executions/"+id, nil).wants(t, 200).body)
	for what, text := range map[string]string{"the export of events": export, "the execution": log} {
		if !strings.Contains(text, `"`+one+`"`) || !strings.Contains(text, `"`+two+`"`) {
			t.Errorf("%s does not tell %s from %s:\n%s", what, one, two, text)
		}
	}
}
