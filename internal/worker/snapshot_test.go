package worker_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// see has every call of a tool seen by the reading one.
func (y *fixture) see(tool string, required bool) {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		rule := catalog.SnapshotRule{Tool: toolRead, Args: json.RawMessage(`{"of":"$key"}`), Required: required}
		return catalog.PutSnapshotRule(ctx, tx, y.tenant, policy.Key{Source: "fake", Action: tool}, &rule)
	})
}

// snapshots returns the snapshots of an envelope in short: "1 before {"n":1}".
func (y *fixture) snapshots(id envelope.ActionID) (lines []string) {
	y.t.Helper()
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		all, err := snapshot.List(ctx, tx, y.tenant, id)
		for _, s := range all {
			lines = append(lines, string('0'+rune(s.Attempt))+" "+string(s.Stage)+" "+s.Code+string(s.Result))
		}
		return err
	})
	return lines
}

func TestACallIsSeenBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reads, calls []sourcetest.Step
		want         []string
		history      []string
	}{
		"done": {
			[]sourcetest.Step{sourcetest.Done(`{"n":1}`), sourcetest.Done(`{"n":2,"password":"x"}`)}, nil,
			[]string{`1 before {"n":1}`, `1 after {"n":2,"password":"[REDACTED]"}`}, []string{"1 sent"},
		},
		"tried again": {
			[]sourcetest.Step{sourcetest.Done(`{"n":1}`), sourcetest.Done(`{"n":2}`), sourcetest.Done(`{"n":3}`)}, []sourcetest.Step{sourcetest.Unreachable()},
			[]string{`1 before {"n":1}`, `2 before {"n":2}`, `2 after {"n":3}`}, []string{"1 pending unreachable", "2 sent"},
		},
		"never heard of again": {
			[]sourcetest.Step{sourcetest.Done(`{"n":1}`), sourcetest.Done(`{"n":2}`)}, []sourcetest.Step{sourcetest.Lost()},
			[]string{`1 before {"n":1}`, `1 after {"n":2}`}, []string{"1 unknown lost"},
		},
		"refused": {
			[]sourcetest.Step{sourcetest.Done(`{"n":1}`)}, []sourcetest.Step{sourcetest.Failed()},
			[]string{`1 before {"n":1}`}, []string{"1 failed tool_error"},
		},
		"seen by a read that fails": {
			[]sourcetest.Step{sourcetest.Failed(), sourcetest.Unreachable()}, nil,
			[]string{"1 before tool_error", "1 after unreachable"}, []string{"1 sent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.see(toolOnce, false)
			y.src.Next(toolRead, test.reads...)
			y.src.Next(toolOnce, test.calls...)

			id := y.submit(toolOnce, 1)[0]
			y.work()

			if diff := cmp.Diff(test.want, y.snapshots(id)); diff != "" {
				t.Errorf("snapshots (-want +got):\n%s", diff)
			}
			if got := y.history(id); !slices.Equal(got, test.history) {
				t.Errorf("attempts = %q, want %q", got, test.history)
			}
		})
	}
}

func TestACallWaitsForTheSnapshotThatItsRuleRequires(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.see(toolOnce, true)
	y.src.Next(toolRead, sourcetest.Unreachable(), sourcetest.Done(`{"n":1}`), sourcetest.Done(`{"n":2}`))

	id := y.submit(toolOnce, 1)[0]
	y.work()

	if diff := cmp.Diff([]string{"1 before unreachable", `2 before {"n":1}`, `2 after {"n":2}`}, y.snapshots(id)); diff != "" {
		t.Errorf("snapshots (-want +got):\n%s", diff)
	}
	if got, want := y.history(id), []string{"1 pending " + snapshot.CodeFailed, "2 sent"}; !slices.Equal(got, want) || y.effects(id) != 1 {
		t.Errorf("attempts = %q with %d effects, want %q with one", got, y.effects(id), want)
	}
}

// TestSnapshotsHaveKeysOfTheirOwn uses a source that honours keys: a read must
// not be taken for the call or for another read.
func TestSnapshotsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.see(toolKeyed, false)

	id := y.submit(toolKeyed, 1)[0]
	y.work()

	keys := make(map[string]bool)
	for _, call := range y.src.Calls() {
		keys[call.Key] = true
		if call.Tool == toolRead && string(call.Args) != `{"of":"`+y.key(id)+`"}` {
			t.Errorf("the read was asked %s", call.Args)
		}
	}
	if len(keys) != 3 || y.effects(id) != 1 {
		t.Errorf("%d keys and %d effects, want 3 and 1", len(keys), y.effects(id))
	}
}

// TestSnapshotsGoWithTheirAction has retention's way of deleting at work.
func TestSnapshotsGoWithTheirAction(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.see(toolOnce, false)
	kept, gone := y.submit(toolOnce, 1)[0], y.submit(toolOnce, 1)[0]
	y.work()

	y.exec("DELETE FROM actions WHERE action_id = $1", gone.String())

	if n := len(y.snapshots(kept)); n != 2 {
		t.Errorf("%d snapshots are left of what is kept, want 2", n)
	}
	if got := y.snapshots(gone); got != nil {
		t.Errorf("snapshots %q are left of what was deleted", got)
	}
}

func TestDryRunsAreForgotten(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	for _, age := range []string{"1 day", "29 days", "31 days", "1 year"} {
		y.exec(`INSERT INTO dry_runs (tenant_id, execution_id, at, content_digest, source_id, tool_name, args, risk, effect, mode, mode_source, trace, preview)
			VALUES ($1, gen_random_uuid(), now() - $2::interval, '', 's', 't', '{}', 'low', 'once', 'allow', 's', '[]', '{}')`, y.tenant.String(), age)
	}

	done, err := execution.PruneDryRuns(t.Context(), y.db, func() bool { return true })

	if n := one[int](y, "SELECT count(1) FROM dry_runs"); n != 2 || !done || err != nil {
		t.Errorf("PruneDryRuns = %t, %v and leaves %d, want true and 2", done, err, n)
	}
}
