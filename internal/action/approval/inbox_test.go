package approval_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func (o fixture) inbox(after envelope.ActionID, most int) []approval.InboxItem {
	o.t.Helper()
	return o.inboxOf(approval.InboxQuery{After: &approval.InboxPlace{Action: after}, Most: most})
}

func (o fixture) inboxOf(q approval.InboxQuery) []approval.InboxItem {
	o.t.Helper()
	all, err := o.service.Inbox(o.t.Context(), o.decider("anybody"), q)
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

func TestInboxListsPendingItems(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.review(2)
	ids := o.propose(6)
	o.overdue(ids[0])
	if err := o.service.Deny(t.Context(), o.person("ada"), ids[1], approval.Denial{}); err != nil {
		t.Fatal(err)
	}
	if err := o.grant(o.person("ada"), ids[2], ""); err != nil {
		t.Fatal(err)
	}
	o.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code, message) VALUES ($1, $2, 'unknown', 1, 'worker_lost', 'it vanished')", o.tenant.String(), ids[3].String())
	o.exec("UPDATE actions SET approval_state = 'granted' WHERE action_id = $1", ids[3].String())
	if err := o.service.Edit(t.Context(), o.person("bob"), ids[4], approval.Edit{Args: []byte(`{"n":2}`)}); err != nil {
		t.Fatal(err)
	}

	all := o.inbox(envelope.ActionID{}, 10)

	var got []envelope.ActionID
	for _, it := range all {
		got = append(got, it.Action)
	}
	if !slices.Equal(got, ids[2:]) {
		t.Fatalf("inbox = %v, want %v", got, ids[2:])
	}
	voted, lost, edited := all[0], all[1], all[2]
	if voted.Given != 1 || voted.Needed != 2 || len(voted.ApprovedBy) != 1 || !isOf(voted.ApprovedBy[0], "ada") || voted.Kind != approval.InboxApproval || voted.ExpiresAt.IsZero() || voted.Policy == "" {
		t.Errorf("one with a vote = %+v", voted)
	}
	if lost.Kind != approval.InboxUnknown || lost.Code != "worker_lost" || lost.Message != "it vanished" || lost.ETag != "" {
		t.Errorf("one of unknown outcome = %+v", lost)
	}
	if !isOf(edited.EditedBy, "bob") || string(edited.Args) != `{"n": 2}` {
		t.Errorf("an edited one = %+v", edited)
	}
	if page := o.inbox(ids[3], 1); len(page) != 1 || page[0].Action != ids[4] {
		t.Errorf("the page behind %s = %v", ids[3], page)
	}
}

func TestInboxShowsDrift(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tools   []source.Tool
		want    string
		propose bool
	}{
		"as it was":                            {tools: listing("as listed")},
		"changed since it was proposed":        {tools: listing("changed"), want: "must be proposed again"},
		"gone":                                 {want: "no longer has the tool"},
		"not as accepted when it was proposed": {tools: listing("changed"), want: "not the accepted one", propose: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			before := o.propose(1)[0]
			o.as(func(ctx context.Context, tx pgx.Tx) error {
				return catalog.PutListing(ctx, tx, o.tenant, "src", test.tools)
			})
			if test.propose {
				before = o.propose(1)[0]
			}

			all := o.inbox(envelope.ActionID{}, 10)

			last := all[len(all)-1]
			if last.Action != before || !strings.Contains(last.Drift, test.want) || (test.want == "") != (last.Drift == "") {
				t.Errorf("drift = %q, want %q in it", last.Drift, test.want)
			}
		})
	}
}
