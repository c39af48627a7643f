package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// busy lets a tenant's actions pass through all states, and returns an action
// that was edited and granted by a vote, and one that policy allowed.
func (y *fixture) busy() (decided, sent envelope.ActionID) {
	y.t.Helper()
	sent = y.submit(toolKeyed, 5)[0]
	y.submit(toolOnce, 3)
	undone := y.submit(toolRead, 1)[0]
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return outbox.Undo(ctx, tx, y.tenant, undone, "ada") })
	y.mode(envelope.ModeRequireApproval)
	var waiting []envelope.ActionID
	for _, args := range []string{`{"n":1.50,"big":12345678901234567890,"é":"\u00e9","z":[1e2,-0.0]}`, `{}`, `{"a":{"b":null}}`, `{"x":1}`} {
		answers, err := y.in.Accept(y.t.Context(), intake.Submitter{
			Tenant: y.tenant, Token: uuid.New(), Name: "agent", Session: "s", Origin: json.RawMessage(`{"via":"api","ip":"192.0.2.1"}`),
		}, []*envelope.Proposal{{
			Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolKeyed, Source: "fake"}, Args: json.RawMessage(args), ExternalID: uuid.NewString(),
			Constraints: envelope.Constraints{MustRunBefore: time.Now().Add(time.Hour)},
		}})
		if err != nil || answers[0].Err != nil {
			y.t.Fatal(err, answers)
		}
		waiting = append(waiting, answers[0].Action)
	}
	approvals := approval.New(y.db, settings.NewCache(), approval.Config{})
	by := y.decider("ada")
	edit := approval.Approval{Args: json.RawMessage(`{"n":2.0,"more":[]}`), Note: "better"}
	if _, err := approvals.Approve(y.t.Context(), by, waiting[0], edit); err != nil {
		y.t.Fatal(err)
	}
	if err := approvals.Deny(y.t.Context(), by, waiting[1], approval.Denial{Note: "no"}); err != nil {
		y.t.Fatal(err)
	}
	y.exec("UPDATE actions SET approval_expires_at = now() WHERE action_id = $1", waiting[2].String())
	if _, err := approval.Expire(y.t.Context(), y.db, 10); err != nil {
		y.t.Fatal(err)
	}
	y.configure(func(ctx context.Context, tx pgx.Tx) error { return outbox.Undo(ctx, tx, y.tenant, waiting[3], "ada") })
	y.mode(envelope.ModeDeny)
	if _, err := y.in.Accept(y.t.Context(), intake.Submitter{Tenant: y.tenant, Name: "agent"}, []*envelope.Proposal{
		{Type: envelope.TypeExec, Tool: envelope.Tool{Name: toolRead, Source: "fake"}, Args: json.RawMessage(`{}`)},
	}); err != nil {
		y.t.Fatal(err)
	}
	y.mode(envelope.ModeAllow)
	y.work()
	return waiting[0], sent
}

// checkpoint covers all events.
func (y *fixture) checkpoint() {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), txTimeout)
	defer cancel()
	// Events are covered once they are older than every open transaction of the
	// server, including other tests' transactions.
	for covered := false; !covered; {
		if _, err := audit.CheckpointAll(ctx, y.db, func() bool { return true }); err != nil {
			y.t.Fatal(err)
		}
		covered = one[bool](y, `SELECT NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = $1 AND (e.txid, e.event_id) >
			(SELECT c.until_txid, c.until_event FROM checkpoints c WHERE c.tenant_id = $1 ORDER BY c.checkpoint_no DESC LIMIT 1))
			AND EXISTS (SELECT 1 FROM checkpoints c WHERE c.tenant_id = $1)`, uuid.UUID(y.tenant))
	}
}

// findings verifies the whole record in a transaction, and returns each finding in
// short.
func (y *fixture) findings(tx pgx.Tx) (all []string, rows audit.RowsReport) {
	y.t.Helper()
	chain, err := audit.Verify(y.t.Context(), tx, y.tenant, audit.Options{})
	if err != nil {
		y.t.Fatal(err)
	}
	for _, f := range chain.Findings {
		all = append(all, fmt.Sprintf("%s event", f.Kind))
	}
	for part := (audit.Part{No: 1, Of: 2}); part != (audit.Part{}); part = rows.Next {
		one, err := audit.VerifyRows(y.t.Context(), tx, y.tenant, audit.RowsOptions{Part: part})
		if err != nil {
			y.t.Fatal(err)
		}
		rows.Join(one)
	}
	for _, f := range rows.Findings {
		id := f.Action
		if f.Table == "decisions" {
			id = f.Decision
		}
		all = append(all, fmt.Sprintf("%s %s %s %s", f.Kind, f.Table, id, f.Columns))
	}
	return all, rows
}

// TestTheRecordOfABusyTenantVerifies is the control: changes made by Countersign
// are no findings, also during the verification.
func TestTheRecordOfABusyTenantVerifies(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.busy()
	stop := y.run(y.pipeline(y.db, y.src, config("w2")))
	written := make(chan struct{})
	go func() { // waited for by the receive below
		defer close(written)
		for range 10 {
			y.submit(toolKeyed, 20)
		}
	}()

	for range 5 {
		err := postgres.InTx(t.Context(), y.db, postgres.API(y.tenant).Snapshot(), func(tx pgx.Tx) error {
			whole, err := audit.VerifyRows(t.Context(), tx, y.tenant, audit.RowsOptions{})
			if err != nil {
				return err
			}
			found, rows := y.findings(tx)
			whole.Part, whole.Events = rows.Part, rows.Events
			if diff := cmp.Diff(whole, rows, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the whole, and what its parts add up to (-whole +parts):\n%s", diff)
			}
			if len(found) > 0 || rows.Actions < 10 || rows.Votes != 2 || rows.Attempts == 0 || rows.Decisions < 3 {
				t.Errorf("findings %q in %+v, want none", found, rows)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	<-written
	y.empty()
	stop()
	y.checkpoint()
}

// verified calls do with the findings in a transaction, after a change as the owner
// of the database if there is one. Nothing of it stays.
func (y *fixture) verified(change string, do func(found []string, rows audit.RowsReport)) {
	y.t.Helper()
	err := postgres.InTx(y.t.Context(), y.db, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(y.t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		if change != "" {
			if _, err := tx.Exec(y.t.Context(), change); err != nil {
				return fmt.Errorf("%s: %w", change, err)
			}
		}
		do(y.findings(tx))
		return errRollback
	})
	if !errors.Is(err, errRollback) {
		y.t.Error(err)
	}
}

func (y *fixture) sweepRetention() {
	y.t.Helper()
	done, err := retention.Sweep(y.t.Context(), y.db, func() bool { return true })
	if !done || err != nil {
		y.t.Fatalf("Sweep = %t, %v", done, err)
	}
}

// TestPartitionsThatRetentionDroppedAreNotMissing lets retention delete all
// attempts of a month and its partition, and then drops another partition by hand.
func TestPartitionsThatRetentionDroppedAreNotMissing(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.busy()
	kept := y.submit(toolKeyed, 1)[0]
	y.work()
	y.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 1, 'delete')", y.tenant.String())
	// Retention goes by age; the record of the remaining rows is unchanged.
	age := func(table, column, back string) {
		y.exec(fmt.Sprintf("UPDATE %s SET %s = %[2]s %s interval '100 days' WHERE action_id <> $1", table, column, back), kept.String())
	}
	for _, days := range []int{100, 69} { // the end of a month may fall between two attempts
		y.exec(fmt.Sprintf(`DO $$ DECLARE month date := date_trunc('month', (now() - interval '%d days') AT TIME ZONE 'UTC'); BEGIN
			EXECUTE format('CREATE TABLE IF NOT EXISTS countersign_data.tool_executions_%%s PARTITION OF tool_executions FOR VALUES FROM (%%L) TO (%%L)',
				to_char(month, 'YYYYMM'), month || ' 00:00:00+00', (month + interval '1 month')::date || ' 00:00:00+00');
			EXECUTE format('ALTER TABLE tool_executions_%%s OWNER TO countersign_owner', to_char(month, 'YYYYMM'));
		END $$`, days))
	}
	before := one[int](y, "SELECT count(1)::int FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass")
	age("actions", "created_at", "-")
	age("actions", "decided_at", "-")
	age("tool_executions", "finished_at", "-")

	y.sweepRetention()

	age("actions", "created_at", "+")
	age("actions", "decided_at", "+")
	if left := one[int](y, "SELECT count(1)::int FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass"); left >= before {
		t.Fatalf("%d partitions are left of %d, want fewer", left, before)
	}
	y.verified("", func(found []string, rows audit.RowsReport) {
		if len(found) > 0 || rows.Pruned < 10 || rows.Actions == 0 {
			t.Errorf("findings %q in %+v, want none, and actions that retention deleted", found, rows)
		}
	})
	month := one[string](y, "SELECT tableoid::regclass::text FROM tool_executions WHERE action_id = $1", kept.String())
	y.verified("DROP TABLE "+month, func(found []string, _ audit.RowsReport) {
		if want := fmt.Sprintf("missing tool_executions %s row", kept); !slices.Contains(found, want) {
			t.Errorf("without %s: findings %q, want %q", month, found, want)
		}
	})
}

// TestActionsWhoseEventsRetentionDeletedAreCounted deletes the events of actions
// that stay: these cannot be compared, and the others are.
func TestActionsWhoseEventsRetentionDeletedAreCounted(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	old := y.submit(toolKeyed, 5)
	y.work()
	half := y.submit(toolKeyed, 1)[0] // of which only the proposal is old
	y.exec("UPDATE events SET at = at - interval '3 days'")
	y.exec("UPDATE actions SET created_at = created_at - interval '3 days'")
	y.checkpoint()
	y.work()
	young := y.submit(toolKeyed, 1)[0]
	y.work()
	y.checkpoint()
	y.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'events', 1, 'delete')", y.tenant.String())

	y.sweepRetention()

	y.verified("", func(found []string, rows audit.RowsReport) {
		if len(found) > 0 || rows.Unchecked != int64(len(old)) || rows.Actions != 2 {
			t.Errorf("findings %q in %+v, want none, %d actions unchecked and 2 compared", found, rows, len(old))
		}
	})
	for _, id := range []envelope.ActionID{half, young} {
		y.verified(fmt.Sprintf("DELETE FROM tool_executions WHERE action_id = '%s'", id), func(found []string, _ audit.RowsReport) {
			if want := []string{fmt.Sprintf("missing tool_executions %s row", id)}; !slices.Equal(found, want) {
				t.Errorf("findings %q, want %q", found, want)
			}
		})
	}
	y.verified(fmt.Sprintf("DELETE FROM events WHERE at < now() - interval '1 day'; DELETE FROM events WHERE kind = 'proposed' AND items::text LIKE '%%%s%%'", young),
		func(found []string, _ audit.RowsReport) {
			if want := []string{"missing event", fmt.Sprintf("added actions %s ", young)}; !slices.Equal(found, want) {
				t.Errorf("without an event that retention kept: findings %q, want %q", found, want)
			}
		})
}

var errRollback = errors.New("roll back")

// TestForgedRowsAreFound changes, deletes and adds rows as the owner of the
// database can. Each is found, with its table, its action and its columns.
func TestForgedRowsAreFound(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	decided, sent := y.busy()
	y.checkpoint()
	other := uuid.New().String()
	type forgery struct{ sql, want string }
	var all []forgery
	change := func(table, column, value, columns string, id envelope.ActionID) {
		all = append(all, forgery{
			fmt.Sprintf("UPDATE %s SET %s = %s WHERE action_id = '%s'", table, column, value, id),
			fmt.Sprintf("changed %s %s %s", table, id, columns),
		})
	}
	for column, value := range map[string]string{
		"external_id": "'x'", "content_digest": `'\x00'`, "employee_id": "gen_random_uuid()", "session_id": "'x'", "automation_id": "'x'",
		"proposed_by": "gen_random_uuid()", "person": "gen_random_uuid()", "source_id": "'x'", "tool_name": "'x'", "composio_app": "'x'",
		"risk": "'high'", "effect": "'read'", "bucket_id": "0", "rate_bucket": "'x'", "not_before": "now()",
		"must_run_before": "now()", "max_attempts": "99", "traceparent": "'x'", "urgent": "true", "origin": `'{"via":"mcp"}'`,
		"workflow_id": "gen_random_uuid()",
	} {
		change("actions", column, value, "proposal", decided)
	}
	for column, value := range map[string]string{
		"decision_id": "gen_random_uuid()", "config_version": "999", "tool_digest": `'\x00'`, "approval_state": "'auto'",
		"approval_expires_at": "now()", "decided_at": "now()", "decided_by": "'mallory'", "decision_note": "''", "approval_digest": "NULL",
	} {
		change("actions", column, value, "decision", decided)
	}
	change("actions", "args", `'{"to":"mallory"}'`, "args", decided)
	change("actions", "args", `'{"to":"mallory"}'`, "args", sent)
	change("actions", "created_at", "now()", "created_at", sent)
	for column, value := range map[string]string{
		"edits": "'[]'", "edited_by": "'mallory'", "proposed_args": "'{}'", "editors": "'{}'",
	} {
		change("approvals", column, value, "edits", decided)
	}
	for column, value := range map[string]string{
		"round": "7", "person": "gen_random_uuid()", "token": "gen_random_uuid()", "actor": "'mallory'", "decision": "'deny'",
		"note": "'x'", "approval_digest": "NULL", "at": "now()",
	} {
		change("votes", column, value, "row", decided)
	}
	for column, value := range map[string]string{
		"attempt": "7", "status": "'failed'", "code": "'x'", "message": "'x'", "result": `'{"forged":true}'`, "provider_id": "'x'",
		"worker": "'x'", "started_at": "now()", "finished_at": "finished_at + interval '1 microsecond'",
	} {
		change("tool_executions", column, value, "row", sent)
	}
	// A decision of policy is not an action's; its id is the digest of its contents.
	why := one[uuid.UUID](y, "SELECT decision_id FROM actions WHERE action_id = $1", uuid.UUID(sent)).String()
	for column, value := range map[string]string{
		"mode": "'deny'", "mode_source": "'x'", "trace": "'[]'",
		"trace ": `jsonb_set(trace, '{0,said}', '"allow"')`, "trace  ": `jsonb_set(trace, '{0,more}', '""')`, "mode_source ": "''",
	} {
		all = append(all, forgery{fmt.Sprintf("UPDATE decisions SET %s = %s WHERE decision_id = '%s'", column, value, why), "changed decisions " + why})
	}
	copied := "INSERT INTO decisions SELECT (jsonb_populate_record(d, jsonb_build_object('decision_id', '" + other + "'))).* FROM decisions d WHERE decision_id = '" + why + "'"
	all = append(all,
		forgery{"DELETE FROM decisions WHERE decision_id = '" + why + "'", "missing decisions " + why},
		forgery{copied, "changed decisions " + other},
		forgery{"WITH forged AS (" + copied + ") UPDATE actions SET decision_id = '" + other + "' WHERE action_id = '" + sent.String() + "'", "changed actions " + sent.String() + " decision"},
		forgery{"INSERT INTO actions SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', '" + uuid.Nil.String() + "', 'external_id', NULL))).* FROM actions a WHERE action_id = '" + sent.String() + "'", "added actions " + uuid.Nil.String()},
		forgery{"INSERT INTO approvals (tenant_id, action_id, needed) VALUES ('" + y.tenant.String() + "', '" + other + "', 1)", "added approvals " + other},
	)
	attempts := "INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ('" + y.tenant.String() + "', '%s', 1, 'sent', now())"
	all = append(all,
		forgery{"DELETE FROM actions WHERE action_id = '" + sent.String() + "'", "missing actions " + sent.String()},
		forgery{"DELETE FROM votes WHERE action_id = '" + decided.String() + "'", "missing votes " + decided.String()},
		forgery{"DELETE FROM approvals WHERE action_id = '" + decided.String() + "'", "changed approvals " + decided.String()},
		forgery{"DELETE FROM tool_executions WHERE action_id = '" + sent.String() + "'", "missing tool_executions " + sent.String()},
		forgery{"INSERT INTO actions SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', '" + other + "', 'external_id', NULL))).* FROM actions a WHERE action_id = '" + sent.String() + "'", "added actions " + other},
		forgery{"INSERT INTO votes SELECT (jsonb_populate_record(v, jsonb_build_object('person', '" + other + "'))).* FROM votes v WHERE action_id = '" + decided.String() + "'", "added votes " + decided.String()},
		forgery{fmt.Sprintf(attempts, sent), "added tool_executions " + sent.String()},
		forgery{fmt.Sprintf(attempts, other), "added tool_executions " + other},
		forgery{"UPDATE events SET digests = NULL WHERE kind = 'settled'", "changed event"},
		forgery{"UPDATE events SET actor = 'mallory' WHERE kind = 'decided'", "changed event"},
		forgery{"DELETE FROM events WHERE kind = 'edited'", "missing event"},
	)

	for _, f := range all {
		y.verified(f.sql, func(found []string, _ audit.RowsReport) {
			if !strings.Contains(strings.Join(found, "\n"), f.want) {
				t.Errorf("%s: found %q, want %q", f.sql, found, f.want)
			}
		})
	}
}
