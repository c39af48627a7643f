package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
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
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// exec runs a statement as a forger: the superuser, without triggers and
// row-level security.
func (l log) exec(sql string, args ...any) {
	l.t.Helper()
	if err := postgres.InTx(l.t.Context(), l.db, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(l.t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
			return err
		}
		_, err := tx.Exec(l.t.Context(), sql, args...)
		return err
	}); err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
}

// positions returns the positions of all events, in order.
func (l log) positions() []audit.Position {
	l.t.Helper()
	rows, err := l.db.Query(l.t.Context(), "SELECT txid, event_id FROM events WHERE tenant_id = $1 ORDER BY txid, event_id", l.tenant.String())
	if err != nil {
		l.t.Fatal(err)
	}
	places, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p audit.Position, err error) { return p, r.Scan(&p.Tx, &p.Event) })
	if err != nil {
		l.t.Fatal(err)
	}
	return places
}

// checkpoint adds a checkpoint of at most most events.
func (l log) checkpoint(most int) (n int) {
	l.t.Helper()
	if err := postgres.InTx(l.t.Context(), l.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		n, err = audit.Checkpoint(l.t.Context(), tx, l.tenant, most)
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// checkpointed writes batches of events and a checkpoint after each.
func (l log) checkpointed(batches ...int) {
	l.t.Helper()
	for i, n := range batches {
		for j := range n {
			l.write(fmt.Sprint("event ", i, " ", j))
		}
		l.settled()
		if got := l.checkpoint(5000); got != n {
			l.t.Fatalf("Checkpoint = %d, want %d", got, n)
		}
	}
}

func (l log) verify(opt audit.Options) audit.Report {
	l.t.Helper()
	r, err := l.tryVerify(opt)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (l log) tryVerify(opt audit.Options) (r audit.Report, err error) {
	return r, postgres.InTx(l.t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) (err error) {
		r, err = audit.Verify(l.t.Context(), tx, l.tenant, opt)
		return err
	})
}

// wants fails the test unless a verification has these findings. Messages and
// times are ignored.
func (l log) wants(want ...audit.Finding) audit.Report {
	l.t.Helper()
	r := l.verify(audit.Options{})
	if diff := cmp.Diff(want, r.Findings, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(audit.Finding{}, "Message", "At")); diff != "" {
		l.t.Errorf("findings (-want +got):\n%s\n%+v", diff, r.Findings)
	}
	return r
}

// about returns a finding about an event.
func about(kind audit.FindingKind, checkpoint int64, p audit.Position) audit.Finding {
	return audit.Finding{Kind: kind, Checkpoint: checkpoint, Position: p.String(), Event: p.Event}
}

func TestUnchangedLogVerifies(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	if r := l.wants(); r.Head != nil || r.Checkpoints != 0 || !r.UncoveredSince.IsZero() {
		t.Errorf("report of nothing = %+v", r)
	}
	l.checkpointed(3, 1, 2)
	l.write("not yet")

	r := l.wants()

	if r.Checkpoints != 3 || r.Covered != 6 || r.Uncovered != 1 || r.UncoveredSince.IsZero() || r.Next != 0 || r.Head == nil || r.Head.Checkpoint != 3 || !r.Intact() {
		t.Errorf("report = %+v", r)
	}
	if n := l.checkpoint(5000); n > 1 {
		t.Errorf("Checkpoint = %d, want what is left", n)
	}
}

// TestHashesFollowTheDocument computes the encodings a second time. They are
// promised to auditors: exported events must verify in years.
func TestHashesFollowTheDocument(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(1)
	sum := func(fields ...[]byte) []byte {
		var b []byte
		for _, f := range fields {
			b = append(binary.BigEndian.AppendUint64(b, uint64(len(f))), f...)
		}
		h := sha256.Sum256(b)
		return h[:]
	}
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	var position audit.Position
	var at, createdAt time.Time
	var kind, actor, items string
	var leaves, hash, digests []byte
	if err := l.db.QueryRow(t.Context(), `SELECT e.txid, e.event_id, e.at, e.kind, e.actor, e.items::text, e.digests, s.created_at, s.leaves, s.hash
		FROM events e JOIN checkpoints s USING (tenant_id)`).Scan(&position.Tx, &position.Event, &at, &kind, &actor, &items, &digests, &createdAt, &leaves, &hash); err != nil {
		t.Fatal(err)
	}
	tenant := uuid.UUID(l.tenant)

	leaf := sum([]byte("countersign event 1"), tenant[:], number(int64(position.Tx)), number(position.Event), number(at.UnixMicro()), []byte(kind), []byte(actor), []byte(items), digests)
	wantLeaves := slices.Concat(number(int64(position.Tx)), number(position.Event), leaf)
	want := sum([]byte("countersign checkpoint"), number(1), tenant[:], number(1), number(int64(position.Tx)), number(position.Event), number(int64(position.Tx)), number(position.Event),
		number(at.UnixMicro()), number(at.UnixMicro()), number(1), number(createdAt.UnixMicro()), make([]byte, 32), wantLeaves)

	if !bytes.Equal(leaves, wantLeaves) || !bytes.Equal(hash, want) {
		t.Errorf("leaves %x, hash %x, want %x, %x", leaves, hash, wantLeaves, want)
	}
}

func TestEveryChangeOfAnEventIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// sql changes the event $2, $3 of the tenant $1.
		sql string
		// want returns the findings for the third event, which checkpoint 2
		// covers.
		want func(third audit.Position) []audit.Finding
	}{
		"at":          {"UPDATE events SET at = at + interval '1 microsecond'", nil},
		"at, to none": {"UPDATE events SET at = 'infinity'", nil},
		"kind":        {"UPDATE events SET kind = 'decided'", nil},
		"actor":       {"UPDATE events SET actor = actor || ' '", nil},
		"items":       {`UPDATE events SET items = jsonb_set(items, '{0,subject}', '"x"')`, nil},
		"event_id": {"UPDATE events SET event_id = -1", func(p audit.Position) []audit.Finding {
			return []audit.Finding{about(audit.Added, 2, audit.Position{Tx: p.Tx, Event: -1}), about(audit.Missing, 2, p)}
		}},
		"txid": {"UPDATE events SET txid = '1'", func(p audit.Position) []audit.Finding {
			return []audit.Finding{about(audit.Added, 1, audit.Position{Tx: 1, Event: p.Event}), about(audit.Missing, 2, p)}
		}},
		"tenant_id": {"UPDATE events SET tenant_id = gen_random_uuid()", func(p audit.Position) []audit.Finding {
			return []audit.Finding{about(audit.Missing, 2, p)}
		}},
		"the row is gone": {"DELETE FROM events", func(p audit.Position) []audit.Finding {
			return []audit.Finding{about(audit.Missing, 2, p)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t)
			l.checkpointed(2, 2, 1)
			third := l.positions()[2]
			want := []audit.Finding{about(audit.Changed, 2, third)}
			if test.want != nil {
				want = test.want(third)
			}

			l.exec("ALTER TABLE events ALTER COLUMN event_id SET GENERATED BY DEFAULT")
			l.exec(test.sql+" WHERE tenant_id = $1 AND txid = $2 AND event_id = $3", l.tenant.String(), third.Tx, third.Event)

			l.wants(want...)
		})
	}
}

func TestAddedEventIsFound(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(2, 2)
	places := l.positions()
	forged := audit.Position{Tx: places[1].Tx, Event: 1_000_000}
	first := audit.Position{Tx: 3, Event: -7}
	for _, p := range []audit.Position{first, forged} {
		l.exec("INSERT INTO events (tenant_id, txid, event_id, kind, actor, items) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, 'decided', 'ada', '[]')",
			l.tenant.String(), p.Tx, p.Event)
	}

	l.wants(about(audit.Added, 1, first), about(audit.Added, 2, forged))
}

func TestRolesCannotForge(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(1)
	for _, sql := range []string{
		"INSERT INTO events (tenant_id, txid, kind, actor, items) VALUES ('" + l.tenant.String() + "', '1', 'k', 'a', '[]')",
		"INSERT INTO events (tenant_id, at, kind, actor, items) VALUES ('" + l.tenant.String() + "', now(), 'k', 'a', '[]')",
		"UPDATE events SET actor = 'x'", "DELETE FROM events",
		"UPDATE checkpoints SET hash = hash", "UPDATE checkpoints SET pruned_at = now()", "DELETE FROM checkpoints",
	} {
		for who, scope := range map[string]postgres.Scope{"api": postgres.API(l.tenant), "worker": postgres.Worker()} {
			err := postgres.InTx(t.Context(), l.db, scope, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), sql)
				return err
			})
			if err == nil {
				t.Errorf("%s may: %s", who, sql)
			}
		}
	}
}

func TestEveryChangeOfACheckpointIsFound(t *testing.T) {
	t.Parallel()
	other := "decode(repeat('ab', 32), 'hex')"
	changed := func(no int64) []audit.Finding {
		return []audit.Finding{{Kind: audit.CheckpointChanged, Checkpoint: no}}
	}
	broken := func(no int64) []audit.Finding { return []audit.Finding{{Kind: audit.ChainBroken, Checkpoint: no}} }
	for name, test := range map[string]struct {
		sql   string
		want  []audit.Finding
		words string
	}{
		"version":                   {"UPDATE checkpoints SET version = 2 WHERE checkpoint_no = 2", changed(2), "its version"},
		"from_txid":                 {"UPDATE checkpoints SET from_txid = '1' WHERE checkpoint_no = 2", changed(2), "its from"},
		"from_event":                {"UPDATE checkpoints SET from_event = 0 WHERE checkpoint_no = 2", changed(2), "its from"},
		"until_txid":                {"UPDATE checkpoints SET until_txid = '9999999999' WHERE checkpoint_no = 2", changed(2), "its until"},
		"until_event":               {"UPDATE checkpoints SET until_event = 0 WHERE checkpoint_no = 2", changed(2), "its until"},
		"until, backwards":          {"UPDATE checkpoints SET until_txid = '2' WHERE checkpoint_no = 2", changed(2), "its until"},
		"oldest_at":                 {"UPDATE checkpoints SET oldest_at = oldest_at - interval '1 day' WHERE checkpoint_no = 2", changed(2), "its oldest_at"},
		"newest_at":                 {"UPDATE checkpoints SET newest_at = 'infinity' WHERE checkpoint_no = 2", changed(2), "its newest_at"},
		"events":                    {"UPDATE checkpoints SET events = 3 WHERE checkpoint_no = 2", changed(2), "its events"},
		"leaves":                    {"UPDATE checkpoints SET leaves = set_byte(leaves, 50, 255 - get_byte(leaves, 50)) WHERE checkpoint_no = 2", changed(2), "its leaves"},
		"leaves, emptied":           {"UPDATE checkpoints SET leaves = '' WHERE checkpoint_no = 2", changed(2), "its leaves"},
		"leaves, cut":               {"UPDATE checkpoints SET leaves = substring(leaves for 48) WHERE checkpoint_no = 2", changed(2), "its leaves"},
		"prev_hash":                 {"UPDATE checkpoints SET prev_hash = " + other + " WHERE checkpoint_no = 2", changed(2), "its prev_hash"},
		"hash":                      {"UPDATE checkpoints SET hash = " + other + " WHERE checkpoint_no = 2", changed(2), "its hash"},
		"hash, of no size":          {"UPDATE checkpoints SET hash = '' WHERE checkpoint_no = 2", changed(2), "its hash"},
		"hash of the head":          {"UPDATE checkpoints SET hash = " + other + " WHERE checkpoint_no = 3", changed(3), "the changed column is unknown"},
		"created_at":                {"UPDATE checkpoints SET created_at = created_at - interval '1 day' WHERE checkpoint_no = 2", changed(2), "its created_at"},
		"checkpoint_no of the head": {"UPDATE checkpoints SET checkpoint_no = 9 WHERE checkpoint_no = 3", changed(3), "its checkpoint_no"},
		"pruned_at":                 {"UPDATE checkpoints SET pruned_at = now(), pruned_txid = '9', pruned_event = 9 WHERE checkpoint_no = 2", changed(2), "no event records the pruning"},
		"one is gone":               {"DELETE FROM checkpoints WHERE checkpoint_no = 2", broken(3), "checkpoint 2 before it"},
		"the first is gone":         {"DELETE FROM checkpoints WHERE checkpoint_no = 1", broken(2), "checkpoint 1 before it"},
		"two are gone":              {"DELETE FROM checkpoints WHERE checkpoint_no <= 2", broken(3), "the checkpoints 1 to 2"},
		"tenant_id":                 {"UPDATE checkpoints SET tenant_id = gen_random_uuid() WHERE checkpoint_no = 2", broken(3), "checkpoint 2 before it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t)
			l.checkpointed(2, 2, 2)

			l.exec(test.sql)

			r := l.wants(test.want...)
			if len(r.Findings) > 0 && !strings.Contains(r.Findings[0].Message, test.words) {
				t.Errorf("finding says %q, want %q", r.Findings[0].Message, test.words)
			}
			joined := l.verify(audit.Options{Limit: 1})
			for joined.Next != 0 {
				joined.Join(l.verify(audit.Options{Limit: 1, After: joined.Next}))
			}
			if diff := cmp.Diff(r, joined); diff != "" {
				t.Errorf("verified in parts (-whole +parts):\n%s", diff)
			}
		})
	}
}

// TestKnownHeadStaysInTheChain detects a forger who rewrites consistent
// checkpoints, by a head stored elsewhere.
func TestKnownHeadStaysInTheChain(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(2)
	one := *l.wants().Head
	l.checkpointed(2)
	two := *l.wants().Head
	for _, head := range []audit.Head{one, two} {
		if r := l.verify(audit.Options{KnownHead: head.Hash}); !r.Intact() {
			t.Errorf("Verify with head %d = %+v", head.Checkpoint, r.Findings)
		}
	}

	l.exec("DELETE FROM checkpoints")
	l.exec("UPDATE events SET actor = 'mallory' WHERE txid = $1", l.positions()[0].Tx)
	l.checkpoint(2)
	l.checkpoint(2)

	if r := l.wants(); r.Checkpoints != 2 {
		t.Errorf("the forger made %d checkpoints", r.Checkpoints)
	}
	for _, head := range []audit.Head{one, two} {
		r := l.verify(audit.Options{KnownHead: head.Hash})
		if len(r.Findings) != 1 || r.Findings[0].Kind != audit.ChainBroken {
			t.Errorf("Verify with head %d = %+v, want the chain broken", head.Checkpoint, r.Findings)
		}
	}
}

func TestCheckpointsCoverOnlyCommittedTransactions(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(1)
	slow := l.begin("slow")
	l.write("quick")

	if n := l.checkpoint(5000); n != 0 {
		t.Errorf("Checkpoint beside an open transaction = %d, want none yet", n)
	}
	l.commit(slow)
	l.settled()
	if n := l.checkpoint(5000); n != 2 {
		t.Errorf("Checkpoint after it = %d, want both", n)
	}

	l.wants()
}

func TestConcurrentCheckpointsDoNotForkTheChain(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for i := range 40 {
		l.write(fmt.Sprint(i))
	}
	l.settled()

	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for left := true; left; {
				if err := postgres.InTx(t.Context(), l.db, postgres.Worker(), func(tx pgx.Tx) error {
					if _, err := audit.Checkpoint(t.Context(), tx, l.tenant, 3); err != nil {
						return err
					}
					due, err := audit.Due(t.Context(), tx, envelope.TenantID{}, 10)
					left = len(due) > 0
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}

	if r := l.wants(); r.Covered != 40 || r.Uncovered != 0 {
		t.Errorf("report = %+v", r)
	}
}

func TestRolledBackCheckpointLosesNoEvents(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(2)
	l.write("third")
	l.settled()
	errCrash := errors.New("crash")
	err := postgres.InTx(t.Context(), l.db, postgres.Worker(), func(tx pgx.Tx) error {
		if n, err := audit.Checkpoint(t.Context(), tx, l.tenant, 5000); n != 1 || err != nil {
			t.Errorf("Checkpoint = %d, %v", n, err)
		}
		return errCrash
	})
	if !errors.Is(err, errCrash) {
		t.Fatal(err)
	}

	if n := l.checkpoint(5000); n != 1 {
		t.Errorf("Checkpoint = %d, want the same again", n)
	}

	if r := l.wants(); r.Checkpoints != 2 {
		t.Errorf("%d checkpoints, want 2", r.Checkpoints)
	}
}

func TestAllTenantsGetCheckpoints(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	tenants := []log{l}
	for range 4 {
		other := l
		other.tenant = envelope.TenantID(uuid.Must(uuid.NewV7()))
		tenants = append(tenants, other)
	}
	for _, one := range tenants {
		for i := range 3 {
			one.write(fmt.Sprint(i))
		}
	}
	l.settled()
	if done, err := audit.CheckpointAll(t.Context(), l.db, func() bool { return false }); done || err != nil {
		t.Errorf("CheckpointAll without time = %t, %v", done, err)
	}

	done, err := audit.CheckpointAll(t.Context(), l.db, func() bool { return true })

	if !done || err != nil {
		t.Errorf("CheckpointAll = %t, %v", done, err)
	}
	for _, one := range tenants {
		if r := one.wants(); r.Covered != 3 || r.Uncovered != 0 {
			t.Errorf("report = %+v", r)
		}
	}
}

// TestEveryByteIsCovered changes each byte of an event's text.
func TestEveryByteIsCovered(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	words := audit.Event{Tenant: l.tenant, Kind: audit.Configured, Actor: "ada lovelace", Items: []audit.Item{{
		Action: envelope.NewActionID(), Code: "http_400", Attempt: 3, Subject: "source mail", Note: "asked by Bob", Detail: map[string]any{"mode": "deny", "n": 17},
	}}}
	if err := postgres.InTx(t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) error { return audit.Write(t.Context(), tx, words) }); err != nil {
		t.Fatal(err)
	}
	l.settled()
	l.checkpoint(10)
	position := l.positions()[0]
	errUndo := errors.New("undo")

	rapid.Check(t, func(rt *rapid.T) {
		column := rapid.SampledFrom([]string{"kind", "actor", "items"}).Draw(rt, "column")
		var report audit.Report
		changedIt := false
		err := postgres.InTx(t.Context(), l.db, postgres.Admin(), func(tx pgx.Tx) error {
			var text string
			if err := tx.QueryRow(t.Context(), "SELECT "+column+"::text FROM events").Scan(&text); err != nil {
				return err
			}
			changed := []byte(text)
			at := rapid.IntRange(0, len(changed)-1).Draw(rt, "at")
			changed[at] = byte(rapid.IntRange(' ', '~').Draw(rt, "byte"))
			if column == "items" && !otherValue(text, string(changed)) || string(changed) == text {
				return errUndo // no jsonb, or the same one
			}
			changedIt = true
			if _, err := tx.Exec(t.Context(), fmt.Sprintf("UPDATE events SET %s = $1", column), string(changed)); err != nil {
				return err
			}
			var err error
			if report, err = audit.Verify(t.Context(), tx, l.tenant, audit.Options{}); err != nil {
				return err
			}
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			rt.Fatal(err)
		}
		if changedIt && (len(report.Findings) != 1 || report.Findings[0].Kind != audit.Changed || report.Findings[0].Position != position.String()) {
			rt.Fatalf("findings = %+v, want the event changed", report.Findings)
		}
	})
}

// otherValue reports whether is is JSON with another value than was.
func otherValue(was, is string) bool {
	var a, b any
	return json.Unmarshal([]byte(was), &a) == nil && json.Unmarshal([]byte(is), &b) == nil && !cmp.Equal(a, b)
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.exec("INSERT INTO events (tenant_id, kind, actor, items) SELECT $1, 'k', 'a', '[]' FROM generate_series(1, 2500)", l.tenant.String())
	l.settled()
	for l.checkpoint(1000) > 0 {
	}
	l.exec("UPDATE events SET actor = 'b'")

	r := l.verify(audit.Options{})

	if len(r.Findings) != 1000 || r.Omitted != 1500 || r.Checkpoints != 3 {
		t.Errorf("%d findings, %d omitted, %d checkpoints", len(r.Findings), r.Omitted, r.Checkpoints)
	}
}

func TestVerifyAfterMissingCheckpoint(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(1)

	if _, err := l.tryVerify(audit.Options{After: 9}); !errors.Is(err, fault.NotFound) {
		t.Errorf("Verify = %v, want %v", err, fault.NotFound)
	}
	if r := l.verify(audit.Options{After: 1}); r.Checkpoints != 0 || !r.Intact() {
		t.Errorf("Verify after the head = %+v", r)
	}
}

func (l log) export(ctx context.Context, span audit.Span) []audit.Entry {
	l.t.Helper()
	var all []audit.Entry
	for after := (audit.Position{}); ; {
		var entries []audit.Entry
		if err := postgres.InTx(ctx, l.db, postgres.API(l.tenant), func(tx pgx.Tx) (err error) {
			entries, err = audit.Export(ctx, tx, l.tenant, span, after)
			return err
		}); err != nil {
			l.t.Fatal(err)
		}
		all = append(all, entries...)
		if len(entries) < audit.ExportRows {
			return all
		}
		after = entries[len(entries)-1].Position
	}
}

func TestExportTimeRange(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 {
		l.exec("INSERT INTO events (tenant_id, at, kind, actor, items) SELECT $1, $2, 'k', $3, '[{\"a\": 1,  \"b\":2}]' FROM generate_series(1, 150)",
			l.tenant.String(), day.AddDate(0, 0, i), fmt.Sprint("day ", i))
		l.settled()
		if i < 4 {
			l.checkpoint(5000)
		}
	}

	for name, test := range map[string]struct {
		span audit.Span
		want []int
	}{
		"all":           {audit.Span{}, []int{0, 1, 2, 3, 4}},
		"a day":         {audit.Span{From: day.AddDate(0, 0, 1), Until: day.AddDate(0, 0, 2)}, []int{1}},
		"since":         {audit.Span{From: day.AddDate(0, 0, 3)}, []int{3, 4}},
		"not covered":   {audit.Span{From: day.AddDate(0, 0, 4)}, []int{4}},
		"until":         {audit.Span{Until: day.AddDate(0, 0, 1)}, []int{0}},
		"before it all": {audit.Span{Until: day}, nil},
		"after it all":  {audit.Span{From: day.AddDate(1, 0, 0)}, nil},
	} {
		var want, got []string
		for _, d := range test.want {
			for range 150 {
				want = append(want, fmt.Sprint("day ", d, " checkpoint ", (d+1)%5))
			}
		}
		for _, e := range l.export(t.Context(), test.span) {
			got = append(got, fmt.Sprint(e.Actor, " checkpoint ", e.Checkpoint))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLineHasTheHashedItems(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.checkpointed(1)
	e := l.export(t.Context(), audit.Span{})[0]

	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}

	var read struct {
		Position   string
		Checkpoint int64 `json:"checkpoint_no"`
		Leaf       audit.Hash
		Items      json.RawMessage
	}
	if err := json.Unmarshal(line, &read); err != nil || bytes.Count(line, []byte("\n")) != 1 {
		t.Fatalf("%v in %s", err, line)
	}
	if string(read.Items) != e.Items || read.Leaf != e.Leaf || read.Position != e.Position.String() || read.Checkpoint != 1 {
		t.Errorf("line = %s, want %+v", line, e)
	}
	var leaves []byte
	if err := l.db.QueryRow(t.Context(), "SELECT leaves FROM checkpoints").Scan(&leaves); err != nil || !bytes.Equal(leaves[16:], e.Leaf[:]) {
		t.Errorf("the checkpoint has another leaf: %x, %v", leaves, err)
	}
}

func TestParseHash(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		want := audit.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))

		got, err := audit.ParseHash(want.String())

		if err != nil || got != want {
			t.Fatalf("ParseHash(%s) = %s, %v", want, got, err)
		}
	})
	for _, text := range []string{"", "ab", strings.Repeat("x", 64), strings.Repeat("a", 66)} {
		if _, err := audit.ParseHash(text); err == nil {
			t.Errorf("ParseHash(%q) = nil", text)
		}
	}
}
