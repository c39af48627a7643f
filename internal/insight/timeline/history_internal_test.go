package timeline

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// constants returns the values of the constants of a type in a file.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if name, is := specType(spec, ok); is && name == typ {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	slices.Sort(values)
	return values
}

func specType(spec *ast.ValueSpec, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	ident, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return ident.Name, true
}

// TestEveryKindOfEventHasAPresentation fails if a kind of event has no
// presentation.
func TestEveryKindOfEventHasAPresentation(t *testing.T) {
	t.Parallel()
	var presented, kinds []string
	for kind, a := range presentations() {
		presented = append(presented, string(kind))
		for _, k := range a.kinds {
			kinds = append(kinds, string(k))
		}
		if a.indexed && len(a.kinds) != 1 {
			t.Errorf("an event %s is read, and is %v in a history, want one kind", kind, a.kinds)
		}
	}
	slices.Sort(presented)
	slices.Sort(kinds)

	if diff := cmp.Diff(constants(t, "../../audit/event.go", "Kind"), presented); diff != "" {
		t.Errorf("kinds of events (-audit +presentations):\n%s", diff)
	}
	// Waiting and reversals have no events of their own.
	kinds = slices.Sorted(slices.Values(append(slices.Compact(kinds), string(wire.HistoryWaits), string(wire.HistoryReverted))))
	if diff := cmp.Diff(constants(t, "../../../client/wire/history.go", "HistoryKind"), kinds); diff != "" {
		t.Errorf("kinds in a history (-wire +presentations):\n%s", diff)
	}
}

var quotedWord = regexp.MustCompile(`'([a-z_]+)'`)

// TestEventsOfAnActionAreFoundByTheirIndex compares the kinds of event that are
// read with those of the index and the function, and checks that the function
// uses the index and returns only events of the tenant.
func TestEventsOfAnActionAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dbtest.Tx(t)
	mine, theirs := envelope.TenantID(uuid.Must(uuid.NewV7())), envelope.TenantID(uuid.Must(uuid.NewV7()))
	action := envelope.NewActionID()
	var index, function string
	err := postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT pg_get_indexdef('events_of_actions'::regclass), pg_get_functiondef('action_events'::regproc)").Scan(&index, &function)
	})
	if err != nil {
		t.Fatal(err)
	}

	for what, text := range map[string]string{"index": index[regexp.MustCompile("WHERE").FindStringIndex(index)[0]:], "function": kindList.FindString(function)} {
		var kinds []string
		for _, m := range quotedWord.FindAllStringSubmatch(text, -1) {
			kinds = append(kinds, m[1])
		}
		slices.Sort(kinds)
		if diff := cmp.Diff(indexedKinds(), kinds); diff != "" {
			t.Errorf("kinds of the %s (-code +database):\n%s", what, diff)
		}
	}

	err = postgres.InTx(ctx, db, postgres.API(mine), func(tx pgx.Tx) error {
		return audit.Write(ctx, tx, audit.Event{Tenant: mine, Kind: audit.Replayed, Actor: "ana", Items: []audit.Item{
			{Action: envelope.NewActionID(), Note: "another"}, {Action: action, Note: "again"},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[envelope.TenantID][]string{mine: {"again"}, theirs: nil} {
		var notes []string
		err := postgres.InTx(ctx, db, postgres.API(tenant), func(tx pgx.Tx) error {
			events, err := readEvents(ctx, tx, action)
			for _, e := range events {
				notes = append(notes, e.note)
			}
			return err
		})
		if err != nil || !slices.Equal(notes, want) {
			t.Errorf("events = %q, %v, want %q", notes, err, want)
		}
	}
}

var kindList = regexp.MustCompile(`e\.kind IN \([^)]*\)`)

// TestReadingEventsOfAnActionUsesTheIndex explains the statement of the function
// as its owner runs it.
func TestReadingEventsOfAnActionUsesTheIndex(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), dbtest.Tx(t)
	err := postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		for _, sql := range []string{
			"INSERT INTO events (tenant_id, kind, actor, items) SELECT gen_random_uuid(), 'settled', 'w', jsonb_build_array(jsonb_build_object('action_id', gen_random_uuid())) FROM generate_series(1, 3000)",
			"INSERT INTO events (tenant_id, kind, actor, items) SELECT gen_random_uuid(), 'replayed', 'w', jsonb_build_array(jsonb_build_object('action_id', gen_random_uuid())) FROM generate_series(1, 300)",
			"ANALYZE events", "SET LOCAL ROLE countersign_owner",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, `EXPLAIN SELECT e.at FROM events e
			WHERE e.kind IN ('returned_to_approval', 'expiring', 'escalated', 'undone', 'killed', 'replayed', 'discarded')
				AND jsonb_path_query_array(e.items, '$[*].action_id') @> jsonb_build_array($1::text)`, uuid.NewString())
		if err != nil {
			return err
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if !slices.ContainsFunc(plan, regexp.MustCompile("events_of_actions").MatchString) {
			t.Errorf("the plan does not use the index:\n%q", plan)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEndsWithoutACall distinguishes attempts from ends without one, by the
// execution log.
func TestEndsWithoutACall(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := at.Add(-time.Second)
	for name, test := range map[string]struct {
		attempt wire.Attempt
		want    wire.HistoryKind
	}{
		"done":                         {wire.Attempt{Status: envelope.StatusSent, StartedAt: &before}, wire.HistoryAttempt},
		"done at once":                 {wire.Attempt{Status: envelope.StatusSent, StartedAt: &at}, wire.HistoryAttempt},
		"failed with a code of ours":   {wire.Attempt{Status: envelope.StatusFailed, Code: "killed", StartedAt: &before}, wire.HistoryAttempt},
		"too late":                     {wire.Attempt{Status: envelope.StatusSkipped, Code: "deadline", StartedAt: &at}, wire.HistoryEnded},
		"its worker was lost":          {wire.Attempt{Status: envelope.StatusUnknown, Code: "worker_lost", StartedAt: &at}, wire.HistoryEnded},
		"killed by a worker's recheck": {wire.Attempt{Status: envelope.StatusSkipped, Code: "killed", StartedAt: &at}, wire.HistoryKilled},
		"killed":                       {wire.Attempt{Status: envelope.StatusSkipped, Code: "killed"}, wire.HistoryKilled},
		"undone":                       {wire.Attempt{Status: envelope.StatusSkipped, Code: outbox.CodeUndone}, wire.HistoryUndone},
		"resolved":                     {wire.Attempt{Status: envelope.StatusFailed, Code: "resolved"}, wire.HistoryResolved},
	} {
		test.attempt.FinishedAt = at
		r := record{attempts: []wire.Attempt{test.attempt}}

		if got := r.fromAttempts(); len(got) != 1 || got[0].Kind != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

// indexedKinds returns the kinds of event that a history reads, sorted.
func indexedKinds() []string {
	var kinds []string
	for kind, a := range presentations() {
		if a.indexed {
			kinds = append(kinds, string(kind))
		}
	}
	slices.Sort(kinds)
	return kinds
}
