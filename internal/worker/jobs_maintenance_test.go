package worker_test

import "testing"

func TestTheLeaderWritesCheckpointsAndPrunes(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 30, 'delete')", y.tenant.String())
	y.submit(toolOnce, 1)
	old := y.submit(toolOnce, 1)[0]
	y.exec("DELETE FROM outbox")
	y.exec("UPDATE actions SET created_at = '2025-01-01', approval_state = 'denied', decided_at = '2025-01-01' WHERE action_id = $1", old.String())
	// No checkpoint is written before the open transactions of other tests have
	// ended, which they do by themselves.
	for !one[bool](y, "SELECT max(txid::text::bigint) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM events") {
	}
	y.run(y.fleet(y.src, config("w1")))

	y.until("SELECT count(1) = 1 FROM actions")
	y.until("SELECT EXISTS (SELECT 1 FROM retention_checks)")
	y.until("SELECT EXISTS (SELECT 1 FROM checkpoints)")
}
