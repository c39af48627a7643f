package retention_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
)

// past returns the setting that deletes data of a kind older than a month.
func past(kind retention.Kind) retention.Setting {
	return retention.Setting{Kind: kind, Days: 30, Action: retention.Delete}
}

func TestNothingUnfinishedIsDeleted(t *testing.T) {
	t.Parallel()
	s := newFixture(t).tenant(past(retention.Actions))
	attempted := func(name, approval, status, at string) envelope.ActionID {
		id := s.action(name, approval)
		s.attempt(id, 1, status, at)
		return id
	}
	scheduled := func(id envelope.ActionID) {
		s.exec("INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) VALUES ($1, $2, 1, '2025-03-06', 3)", s.id.String(), id.String())
	}
	deadLetter := func(id envelope.ActionID, reason string) {
		s.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES ($1, $2, $3, 1)", s.id.String(), id.String(), reason)
	}
	const then = "2025-03-06"
	attempted("sent", "auto", "sent", then)
	attempted("conflict", "granted", "conflict", then)
	attempted("skipped", "auto", "skipped", then)
	attempted("given up", "auto", "failed", then)
	s.action("denied", "denied")
	s.action("expired", "expired")

	scheduled(s.action("never tried", "auto"))
	scheduled(attempted("tried", "auto", "pending", then))
	scheduled(attempted("failed, and replayed", "auto", "failed", then))
	s.action("waits for a person", "required")
	attempted("waits for a person, replayed", "required", "failed", then)
	deadLetter(attempted("dead", "auto", "failed", then), "refused")
	deadLetter(attempted("unknown", "auto", "unknown", then), "unknown")
	deadLetter(s.action("dead, never tried", "denied"), "refused")
	s.action("of unknown whereabouts", "auto")
	attempted("in the midst of it", "auto", "pending", then)
	attempted("ended lately", "auto", "sent", "now")
	s.exec("UPDATE actions SET decided_at = now() WHERE action_id = $1", s.action("denied lately", "denied").String())
	s.exec("UPDATE actions SET created_at = now() WHERE action_id = $1", s.action("proposed lately", "denied").String())

	s.sweep()

	rows, err := s.db.Query(t.Context(), "SELECT external_id FROM actions ORDER BY external_id")
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"never tried", "tried", "failed, and replayed", "waits for a person", "waits for a person, replayed", "dead", "unknown", "dead, never tried",
		"of unknown whereabouts", "in the midst of it", "ended lately", "denied lately", "proposed lately",
	}
	slices.Sort(want)
	slices.Sort(left)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("envelopes that are kept (-want +got):\n%s", diff)
	}
	if got := s.count("tool_executions"); got != 7 {
		t.Errorf("%d rows actions are kept, want those of what is kept", got)
	}
}

func TestDiscardedDeadLetterReleasesItsEnvelope(t *testing.T) {
	t.Parallel()
	s := newFixture(t).tenant(past(retention.Actions))
	id := s.action("dead", "auto")
	s.attempt(id, 1, "failed", "2025-03-06")
	s.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES ($1, $2, 'refused', 1)", s.id.String(), id.String())
	s.sweep()
	if s.count("actions") != 1 {
		t.Fatal("a dead letter lost its envelope")
	}
	s.exec("DELETE FROM dead_letters")

	s.sweep()

	if n := s.count("actions") + s.count("tool_executions"); n != 0 {
		t.Errorf("%d rows are kept, want none", n)
	}
}

func TestNameOfADeletedEnvelopeIsReusable(t *testing.T) {
	t.Parallel()
	s := newFixture(t).tenant(past(retention.Actions))
	s.attempt(s.action("welcome-4711", "auto"), 1, "sent", "2025-03-06")
	s.sweep()

	s.action("welcome-4711", "auto")

	if n := s.count("actions"); n != 1 {
		t.Errorf("%d envelopes, want the new one", n)
	}
}

func TestInterruptedSweepIsContinued(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, other := c.tenant(past(retention.Actions)), c.tenant()
	s.ended(12_000)
	other.ended(10)
	steps := 0
	few := func() bool { steps++; return steps <= 3 } // one search and one chunk

	done, err := retention.Sweep(t.Context(), c.db, few)

	if left := s.count("actions"); done || err != nil || left == 0 || left == 12_000 {
		t.Fatalf("Sweep = %t, %v, and left %d", done, err, left)
	}
	c.sweep()
	if n := s.count("actions") + s.count("tool_executions"); n != 0 {
		t.Errorf("%d rows are kept, want none", n)
	}
	if other.count("actions") != 10 || other.count("tool_executions") != 20 {
		t.Error("a tenant that deletes nothing lost something")
	}
	if got := s.count("decisions"); got != 1 {
		t.Errorf("%d decisions, want the one that was", got)
	}
}

func TestWorkerCannotDeleteKeptRows(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s := c.tenant()
	s.attempt(s.action("kept", "auto"), 1, "sent", "2025-03-06")
	s.happened(3, "2025-03-01")

	attempt := func(sql string) (n int, err error) {
		return n, postgres.InTx(t.Context(), c.db, postgres.Worker(), func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql).Scan(&n) })
	}
	for _, sql := range []string{
		"DELETE FROM actions RETURNING 1", "DELETE FROM tool_executions RETURNING 1", "DELETE FROM events RETURNING 1",
		"UPDATE retention SET days = 1 RETURNING 1",
		"INSERT INTO retention (tenant_id, kind, days, action) SELECT tenant_id, 'actions', 1, 'delete' FROM tenants RETURNING 1",
	} {
		if _, err := attempt(sql); err == nil || errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("%s: %v, want it denied", sql, err)
		}
	}
	for _, sql := range []string{
		"SELECT prune_actions(array_agg(tenant_id), array_agg(action_id)) FROM actions", "SELECT prune_events(tenant_id, 1, 1) FROM tenants",
	} {
		if n, err := attempt(sql); n != 0 || err != nil {
			t.Errorf("%s = %d, %v, want nothing done", sql, n, err)
		}
	}
	if s.count("actions") != 1 || s.count("tool_executions") != 1 || s.count("events") != 3 {
		t.Error("the worker deleted what its tenant keeps")
	}
}

func TestEventsArePrunedWithoutTheirCheckpoints(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, other := c.tenant(past(retention.Events)), c.tenant()
	s.happened(4000, "2025-01-01")
	s.happened(3000, "2025-02-01")
	s.happened(10, "2025-03-01")
	s.happened(5, "now")
	other.happened(7, "2025-01-01")

	c.sweep()

	r := s.verify()
	if !r.Intact() || r.Pruned != 7010 || r.Covered != 5 || r.Checkpoints != 4 {
		t.Errorf("report = %+v, want all of it intact", r)
	}
	if got := s.count("events"); got != 5+2 {
		t.Errorf("%d events are kept, want 5 and two about the pruning", got)
	}
	if got := other.verify(); !got.Intact() || got.Covered != 7 || other.count("events") != 7+1 {
		t.Errorf("the other tenant's report = %+v", got)
	}
	s.settled()
	s.happened(1, "now")
	c.sweep()
	if r := s.verify(); !r.Intact() || r.Covered != 8 {
		t.Errorf("report after another sweep = %+v", r)
	}
}

func TestUnverifiedEventsAreKept(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, other := c.tenant(past(retention.Events)), c.tenant(past(retention.Events))
	s.happened(3, "2025-01-01")
	other.happened(3, "2025-01-01")
	s.exec("UPDATE events SET actor = 'mallory' WHERE tenant_id = $1 AND event_id = (SELECT min(event_id) FROM events)", s.id.String())

	done, err := retention.Sweep(t.Context(), c.db, func() bool { return true })

	tampered, ok := errors.AsType[*audit.TamperedError](err)
	if !done || !ok || tampered.Tenant != s.id || !strings.Contains(err.Error(), "checkpoint 1") {
		t.Errorf("Sweep = %t, %v, want the checkpoint named", done, err)
	}
	if s.count("events") != 3 || other.verify().Pruned != 3 {
		t.Error("evidence was deleted, or the other tenant's events were not")
	}
}

// TestFalsePruningMarkIsReported forges marks of pruning, which must match the
// remaining chain.
func TestFalsePruningMarkIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sql  string
		want []audit.FindingKind
	}{
		"a checkpoint marked that was not pruned": {
			"UPDATE checkpoints s SET pruned_at = p.pruned_at, pruned_txid = p.pruned_txid, pruned_event = p.pruned_event FROM checkpoints p WHERE p.checkpoint_no = 1 AND s.checkpoint_no = 2",
			[]audit.FindingKind{audit.CheckpointChanged},
		},
		"and its events deleted": {
			`WITH marked AS (UPDATE checkpoints s SET pruned_at = p.pruned_at, pruned_txid = p.pruned_txid, pruned_event = p.pruned_event FROM checkpoints p WHERE p.checkpoint_no = 1 AND s.checkpoint_no = 2)
			DELETE FROM events WHERE kind = 'settled'`,
			[]audit.FindingKind{audit.CheckpointChanged, audit.Missing, audit.Missing},
		},
		"a mark taken off":               {"UPDATE checkpoints SET pruned_at = NULL, pruned_txid = NULL, pruned_event = NULL WHERE checkpoint_no = 1", []audit.FindingKind{audit.Missing, audit.Missing}},
		"an event put back":              {"INSERT INTO events (tenant_id, txid, kind, actor, items) SELECT tenant_id, from_txid, 'settled', 'w', '[]' FROM checkpoints WHERE checkpoint_no = 1", []audit.FindingKind{audit.Added}},
		"the event of it deleted":        {"DELETE FROM events WHERE kind = 'pruned'", []audit.FindingKind{audit.CheckpointChanged, audit.Missing, audit.Missing, audit.Missing}},
		"the checkpoint's events forged": {"UPDATE checkpoints SET leaves = set_byte(leaves, 20, 255 - get_byte(leaves, 20)) WHERE checkpoint_no = 1", []audit.FindingKind{audit.CheckpointChanged}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t).tenant(past(retention.Events))
			s.happened(2, "2025-01-01")
			s.sweep()
			s.settled()
			s.exec("INSERT INTO events (tenant_id, kind, actor, items) SELECT $1, 'settled', 'w', '[]' FROM generate_series(1, 2)", s.id.String())
			s.settled()
			if done, err := audit.CheckpointAll(t.Context(), s.db, func() bool { return true }); !done || err != nil {
				t.Fatal(err)
			}
			if r := s.verify(); !r.Intact() || r.Pruned != 2 || r.Covered != 3 {
				t.Fatalf("report = %+v", r)
			}

			s.exec(test.sql)

			var got []audit.FindingKind
			r := s.verify()
			for _, f := range r.Findings {
				got = append(got, f.Kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, r.Findings)
			}
		})
	}
}

func TestOldDataIsReportedOnceADay(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, empty := c.tenant(), c.tenant()
	s.ended(3)
	s.happened(2, "2025-01-01")
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			_, err := retention.Sweep(t.Context(), c.db, func() bool { return true })
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}

	var items []audit.Item
	s.settled()
	if err := s.as(func(ctx context.Context, tx pgx.Tx) error {
		events, err := audit.Read(ctx, tx, s.id, audit.Position{}, 10)
		for _, e := range events[2:] {
			items = append(items, e.Items...)
			if e.Kind != audit.RetentionReported || e.Actor != "retention" {
				t.Errorf("event = %+v", e)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []audit.Item{
		{Subject: "3 actions are older than 90 days; nothing is deleted", Detail: map[string]any{"kind": "actions", "days": 90.0, "older": 3.0, "or_more": false}},
		{Subject: "2 events are older than 90 days; nothing is deleted", Detail: map[string]any{"kind": "events", "days": 90.0, "older": 2.0, "or_more": false}},
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	for _, h := range s.list() {
		if h.Older != map[retention.Kind]int64{retention.Actions: 3, retention.Events: 2}[h.Kind] || h.CheckedAt.IsZero() {
			t.Errorf("holding = %+v", h)
		}
	}
	if n := empty.count("events"); n != 0 {
		t.Errorf("%d events for a tenant without old data", n)
	}
	s.exec("UPDATE retention_checks SET checked_at = now() - interval '1 day'")
	c.sweep()
	if n := s.count("events"); n != 4 {
		t.Errorf("%d events, want one more the next day", n)
	}
}

func TestCountIsBounded(t *testing.T) {
	t.Parallel()
	s := newFixture(t).tenant()
	s.ended(10_001)

	s.sweep()

	if got := one[string](s.fixture, "SELECT items->0->>'subject' FROM events"); got != "10000 or more actions are older than 90 days; nothing is deleted" {
		t.Errorf("report = %q", got)
	}
}

func (c fixture) partitions() []string {
	c.t.Helper()
	rows, err := c.db.Query(c.t.Context(), "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tool_executions'::regclass ORDER BY 1")
	if err != nil {
		c.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Fatal(err)
	}
	return names
}

func TestEmptyOldPartitionsAreDropped(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s, keeps := c.tenant(past(retention.Actions)), c.tenant()
	s.ended(3)
	keeps.attempt(keeps.action("kept", "auto"), 1, "sent", "2025-02-02")
	all := c.partitions()

	c.sweep()

	if diff := cmp.Diff(append([]string{"tool_executions_202502"}, all[3:]...), c.partitions()); diff != "" {
		t.Errorf("partitions that are left (-want +got):\n%s", diff)
	}
	if keeps.count("tool_executions") != 1 {
		t.Error("a row that is kept was dropped")
	}
}

func TestDroppingDoesNotWaitForAWriter(t *testing.T) {
	t.Parallel()
	c := newFixture(t)
	s := c.tenant()
	before := c.partitions()
	writer, err := c.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := writer.Exec(t.Context(), "INSERT INTO tool_executions (tenant_id, action_id, attempt, status, finished_at) VALUES ($1, $1, 1, 'sent', now())", s.id.String()); err != nil {
		t.Fatal(err)
	}

	c.sweep()

	if diff := cmp.Diff(before, c.partitions()); diff != "" {
		t.Errorf("partitions beside a writer (-was +is):\n%s", diff)
	}
	if err := writer.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.sweep()
	if got := len(c.partitions()); got != len(before)-3 {
		t.Errorf("%d partitions are left of %d, want 3 fewer", got, len(before))
	}
}
