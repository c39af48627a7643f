package rest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
)

// TestTheForecastCountsVotes: an approval that is one of several sends nothing.
func TestTheForecastCountsVotes(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("forecast-votes")
	left := func(by *client, id string) int {
		var o struct {
			Left *int `json:"approvals_left"`
		}
		by.send("GET", path(id, "/forecast"), nil).wants(t, 200).into(t, &o)
		if o.Left == nil {
			t.Fatal("the forecast has no approvals_left")
		}
		return *o.Left
	}
	id := f.mail(object{"to": "ana"})
	if got := left(f.operator, id); got != 0 {
		t.Errorf("where one must agree, %d are left", got)
	}
	f.admin.send("PUT", "/api/v1/reviews/mail:write", object{"approvals": 2}).wants(t, 200)
	id = f.mail(object{"to": "bo"})
	for name, by := range map[string]*client{"an operator": f.operator, "an admin": f.admin} {
		if got := left(by, id); got != 1 {
			t.Errorf("where two must agree, after %s %d are left", name, got)
		}
	}
	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 200)
	if got := left(f.admin, id); got != 0 {
		t.Errorf("the second of two leaves %d", got)
	}
	if got := left(f.operator, id); got != 1 {
		t.Errorf("for who has voted, %d are left, want 1", got)
	}
}

// TestADryRunOfARevertShowsTheCall: the reversal proposed afterwards is the
// same call.
func TestADryRunOfARevertShowsTheCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("revert-shown").revertible()
	f.automation(envelope.ModeRequireApproval)
	id := f.done(f.agent, "ana")
	var dry struct {
		Items []struct {
			Tool string          `json:"reverse_tool"`
			Args json.RawMessage `json:"reverse_args"`
		}
	}
	f.operator.send("POST", "/api/v1/actions/revert", object{"action_ids": []string{id}, "dry_run": true}).wants(t, 200).into(t, &dry)

	made := f.operator.send("POST", path(id, "/revert"), nil).wants(t, 201).action(t)

	stored := f.operator.pendingAction(made.Envelope.ActionID)
	if len(dry.Items) != 1 || dry.Items[0].Tool != "mail:danger" {
		t.Fatalf("the dry run is %+v", dry)
	}
	var want, got any
	if err := json.Unmarshal(stored.Envelope.Args, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(dry.Items[0].Args, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the call of the dry run (-proposed +shown):\n%s", diff)
	}
}
