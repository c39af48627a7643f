package deadletter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// tried makes a dead letter the open try of an action tag.
func (fx fixture) tried(id envelope.ActionID, external string) {
	fx.T.Helper()
	tenant := fx.Tenant.String()
	fx.Exec("UPDATE actions SET external_id = $1 WHERE action_id = $2", external, id)
	fx.Exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $1, 'work', 'maildir')", tenant)
	fx.Exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		VALUES ($1, $1, $1, sha256('x'), $1, false, now(), 1)`, tenant)
	fx.Exec(`INSERT INTO triage_tags (tenant_id, message_id, action, account_id, state, external_id, tagged_by)
		VALUES ($1, $1, 'create-reminder', $1, 'open', $2, 'mailbox')`, tenant, external)
	fx.Exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
		VALUES ($1, $2, $1, $1, 'tag', '[{"pointer":"/summary","value":"x","origin":"header"}]', jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text,
			'tool', '{"source":"dav","name":"create-reminder"}'::jsonb, 'args', '{"summary":"x"}'::jsonb), $3)`, tenant, external, id)
}

// ended ends the open try of the tag; next is the external id of the next one, or
// empty if none is open.
func (fx fixture) ended(external, next string) {
	fx.T.Helper()
	tenant := fx.Tenant.String()
	fx.Exec(`UPDATE triage_tags SET external_id = nullif($2::text, ''), state = CASE WHEN $2 = '' THEN 'gone' ELSE 'open' END, try = 2 WHERE tenant_id = $1`, tenant, next)
	fx.Exec(`INSERT INTO triage_tag_log (tenant_id, log_id, account_id, message_id, action, try, external_id, source_id, tool_name, status)
		VALUES ($1, $1, $1, $1, 'create-reminder', 1, $2, 'dav', 'create-reminder', 'failed')`, tenant, external)
}

// TestEndedTryIsNotReplayed replays the dead letter of a try while the next one is
// open, and after it has succeeded: both would have the effect.
func TestEndedTryIsNotReplayed(t *testing.T) {
	t.Parallel()
	first, second := "triage:tag:"+strings.Repeat("1", 64), "triage:tag:"+strings.Repeat("2", 64)
	for name, test := range map[string]struct{ next, want string }{
		"while another is open":       {second, "of the action tag create-reminder, whose try " + second + " is open"},
		"after another has succeeded": {"", "set the tag again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			ids := fx.EndAsDeadLetters(2, outbox.Refused)
			fx.tried(ids[0], first)
			fx.ended(first, test.next)

			if _, err := fx.Replay(true, ids[0]); !errors.Is(err, fault.Conflict) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("replay = %v, want a conflict: %s", err, test.want)
			}
			if done := fx.dryRun(deadletter.BulkRequest{IDs: ids}); len(done.ActionIDs) != 1 || done.Left != 1 || done.LeftOut != 1 {
				t.Errorf("dry run by id = %+v, want the ended try left out", done)
			}
			if done := fx.replayBulk(deadletter.BulkRequest{Limit: 9}, 0); len(done.ActionIDs) != 1 || done.ActionIDs[0] != ids[1] || done.Left != 0 || done.LeftOut != 1 {
				t.Errorf("replay of everything = %+v, want the ended try left out", done)
			}
			if fx.Scheduled(ids[0]) {
				t.Error("an ended try runs again")
			}
			fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
				done, err := deadletter.Discard(t.Context(), tx, fx.Tenant, deadletter.BulkRequest{Limit: 9, Actor: "ada"})
				if err == nil && (len(done.ActionIDs) != 1 || done.Left != 0) {
					t.Errorf("discard of everything = %+v, want the ended try", done)
				}
				return err
			})
		})
	}
}

// TestOpenTryIsReplayed replays the dead letter of a try that triage has not ended,
// and that it cannot end meanwhile.
func TestOpenTryIsReplayed(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)
	ids := fx.EndAsDeadLetters(1, outbox.Refused)
	fx.tried(ids[0], "triage:tag:"+strings.Repeat("1", 64))

	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		done, err := deadletter.Replay(t.Context(), tx, fx.Tenant, deadletter.BulkRequest{Limit: 9, Actor: "ada"}, deadletter.ReplayOptions{})
		if err == nil && (len(done.ActionIDs) != 1 || done.LeftOut != 0) {
			t.Errorf("replay of the open try = %+v, want it scheduled", done)
		}
		fx.As(postgres.Admin(), func(other pgx.Tx) error {
			n, err := other.Exec(t.Context(), "SELECT FROM triage_tags FOR NO KEY UPDATE SKIP LOCKED")
			if n.RowsAffected() != 0 {
				t.Error("triage can end the try before its replay is committed")
			}
			return err
		})
		return err
	})

	if !fx.Scheduled(ids[0]) {
		t.Error("the open try is not scheduled")
	}
}

// TestErasedTryIsNotReplayed replays the dead letter of an open try without arguments.
func TestErasedTryIsNotReplayed(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)
	ids := fx.EndAsDeadLetters(1, outbox.Refused)
	fx.tried(ids[0], "triage:tag:"+strings.Repeat("1", 64))
	fx.Exec("UPDATE triage_proposals SET fields = '[]', envelope = jsonb_set(envelope, '{args}', '{}') WHERE tenant_id = $1", fx.Tenant.String())

	if _, err := fx.Replay(true, ids[0]); !errors.Is(err, fault.Conflict) {
		t.Errorf("replay = %v, want a conflict", err)
	}
	if fx.Scheduled(ids[0]) {
		t.Error("an erased try runs again")
	}
}
