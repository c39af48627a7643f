package approval_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/audit"
)

// TestWithdraw undoes pending actions, and leaves decided ones and proposals that
// are not actions yet.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	ids := o.propose(3)
	waiting, denied, early := ids[0], ids[1], uuid.Must(uuid.NewV7())
	account := uuid.Must(uuid.NewV7())
	o.exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $2, 'work', 'maildir')", o.tenant.String(), account)
	o.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		VALUES ($1, $2, $2, sha256('m'), $2, false, now(), 1)`, o.tenant.String(), account)
	proposed := func(id uuid.UUID, name string) {
		o.exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id, withdraw_at)
			SELECT $1, x.id, $2, $2, 'label', '[{"pointer":"/account","value":"work","origin":"config"}]',
				jsonb_build_object('type', 'mcp.exec', 'external_id', x.id, 'tool', '{"source":"mail","name":"message.label"}'::jsonb, 'args', '{"account":"work"}'::jsonb), $3, now()
			FROM (SELECT 'triage:' || encode(sha256(convert_to($4, 'UTF8')), 'hex') AS id) x`, o.tenant.String(), account, id, name)
		o.exec("UPDATE actions SET external_id = (SELECT external_id FROM triage_proposals WHERE proposal_id = $1) WHERE action_id = $1", id)
	}
	proposed(uuid.UUID(waiting), "waiting")
	proposed(uuid.UUID(denied), "denied")
	proposed(early, "early")
	o.exec("INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes) VALUES ($1, $2, $2, '{}', 2)", o.tenant.String(), early)
	o.exec("UPDATE actions SET approval_state = 'denied', decided_at = now(), decided_by = 'ada' WHERE action_id = $1", denied.String())

	if n, err := approval.Withdraw(t.Context(), o.db, 10); n != 3 || err != nil {
		t.Fatalf("Withdraw = %d, %v; want 3", n, err)
	}
	if n, err := approval.Withdraw(t.Context(), o.db, 10); n != 0 || err != nil {
		t.Errorf("a second Withdraw = %d, %v; want 0", n, err)
	}

	if v := o.view(waiting); v.Phase != envelope.PhaseUndone || o.told(audit.Undone, waiting) != 1 {
		t.Errorf("what waited is %s, and the record has %d events of it", v.Phase, o.told(audit.Undone, waiting))
	}
	if v := o.view(denied); v.Phase != envelope.PhaseDenied {
		t.Errorf("what was denied is %s", v.Phase)
	}
	for id, want := range map[uuid.UUID]string{uuid.UUID(waiting): "withdrawn false true", uuid.UUID(denied): "- false true", early: "- false false"} {
		got := one[string](o, "SELECT concat_ws(' ', coalesce(outcome, '-'), CASE WHEN outcome_due THEN 'true' ELSE 'false' END, CASE WHEN withdraw_at IS NULL THEN 'true' ELSE 'false' END) FROM triage_proposals WHERE proposal_id = $1", id)
		if got != want {
			t.Errorf("outcome, whether it is due, and whether the withdrawal ended: %s, want %s", got, want)
		}
	}
}
