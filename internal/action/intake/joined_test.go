package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// stored selects the rows of a proposal, without ids and times.
const stored = `SELECT concat_ws(' ', a.external_id, a.content_digest, a.session_id, a.proposed_by, a.person, a.tool_name, a.args, a.approval_state, a.origin, a.workflow_id,
		a.traceparent, o.awaited, e.actor, e.kind)
	FROM actions a LEFT JOIN outbox o USING (tenant_id, action_id)
	JOIN events e ON e.tenant_id = a.tenant_id AND e.items @> jsonb_build_array(jsonb_build_object('action_id', a.action_id))
	WHERE a.tenant_id = $1 ORDER BY a.external_id`

func (d fixture) stored() (rows []string) {
	d.t.Helper()
	err := postgres.InTx(d.t.Context(), d.db, postgres.Admin(), func(tx pgx.Tx) error {
		found, err := tx.Query(d.t.Context(), stored, d.tenant.String())
		if err == nil {
			rows, err = pgx.CollectRows(found, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return rows
}

// TestJoinedProposalsAreAnsweredAsAlone has two tenants accept the same proposals
// of several agents, one together and the other one after another: valid and
// invalid ones, ids that are taken, and sessions beyond their limits.
func TestJoinedProposalsAreAnsweredAsAlone(t *testing.T) {
	t.Parallel()
	together, alone := newFixture(t), newFixture(t)
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++ // ids of the last rounds come again
		n := rapid.IntRange(2, 12).Draw(rt, "n")
		calls := make([]*envelope.Proposal, n)
		agents := make([]intake.Submitter, n)
		for i := range calls {
			tool := rapid.SampledFrom([]string{"note", "danger", "send", "missing"}).Draw(rt, "tool")
			id := fmt.Sprintf("%d-%d", round, i)
			if rapid.IntRange(0, 3).Draw(rt, "known") == 0 {
				id = fmt.Sprintf("%d-%d", rapid.IntRange(max(1, round-3), round).Draw(rt, "of"), i)
			}
			calls[i] = called(id, tool)
			if rapid.IntRange(0, 3).Draw(rt, "text") == 0 {
				calls[i].Args = json.RawMessage(`{"text":"hello"}`)
			}
			name := rapid.SampledFrom([]string{"ada", "bob"}).Draw(rt, "agent")
			agents[i] = intake.Submitter{
				Token: uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)), Person: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)), Name: name,
				Session: rapid.SampledFrom([]string{"", "", "s", "t"}).Draw(rt, "session"), Awaited: rapid.Bool().Draw(rt, "awaited"),
				Names: together.by().Names, Sight: rapid.SampledFrom([]intake.Sight{intake.SeesOwn, intake.SeesAll}).Draw(rt, "sight"),
				Origin: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i%3)),
			}
		}
		for _, d := range []fixture{together, alone} {
			d.mode("first:danger", envelope.ModeRequireApproval)
			d.sessions(3, 20)
			if round%5 == 0 {
				d.exec("UPDATE session_usage SET window_from = window_from - interval '61 seconds' WHERE tenant_id = $1", d.tenant.String())
			}
		}
		spans := make([]context.Context, n)
		for i := range spans {
			spans[i], _ = tracer.Start(t.Context(), "call")
		}
		of := func(d fixture) []intake.Submitter {
			all := slices.Clone(agents)
			for i := range all {
				all[i].Tenant = d.tenant
			}
			return all
		}
		want := make([]intake.Answer, n)
		for i, by := range of(alone) {
			answers, err := alone.in.Accept(spans[i], by, calls[i:i+1])
			if err != nil {
				rt.Fatal(err)
			}
			want[i] = answers[0]
		}

		got, _, err := together.in.AcceptTogether(spans, together.tenant, of(together), calls)
		if err != nil {
			rt.Fatal(err)
		}

		if diff := cmp.Diff(became(want), became(got)); diff != "" {
			rt.Fatalf("became (-alone +together):\n%s", diff)
		}
		for i := range want {
			if fault.KindOf(want[i].Err) != fault.KindOf(got[i].Err) {
				rt.Errorf("call %d: %v alone, %v together", i, want[i].Err, got[i].Err)
			}
		}
		if diff := cmp.Diff(alone.stored(), together.stored()); diff != "" {
			rt.Fatalf("stored (-alone +together):\n%s", diff)
		}
	})
}

// TestAgentsAtTheSameTime has many agents propose at the same time, some of them
// the same envelope, and counts the envelopes and the answers.
func TestAgentsAtTheSameTime(t *testing.T) {
	t.Parallel()
	d := newSharedFixture(t)
	const callers, each = 40, 5
	var mu sync.Mutex
	words, actions := make(map[string]int), make(map[envelope.ActionID]int)

	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := range each {
				p := called(fmt.Sprintf("own-%d-%d", i, j), "note")
				switch {
				case j == 1:
					p = called(fmt.Sprintf("shared-%d", i%4), "note")
				case j == 2:
					p = called(fmt.Sprintf("invalid-%d", i), "missing")
				}
				answers, err := d.in.Accept(t.Context(), d.by(), []*envelope.Proposal{p})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				words[became(answers)[0]]++
				actions[answers[0].Action]++
				mu.Unlock()
			}
		})
	}
	all.Wait()

	if want := map[string]int{"auto": 3*callers + 4, "known": callers - 4, "refused": callers}; !cmp.Equal(want, words) {
		t.Errorf("became %v, want %v", words, want)
	}
	if n := d.count("SELECT count(*) FROM actions WHERE tenant_id = $1", d.tenant.String()); n != 3*callers+4 || len(actions) != n+1 {
		t.Errorf("%d actions are stored and %d were answered, want %d", n, len(actions)-1, 3*callers+4)
	}
}

// lossyDB commits, and reports that the connection was lost.
type lossyDB struct{ postgres.Begins }

type lossyTx struct{ pgx.Tx }

var errLost = errors.New("connection lost")

func (db lossyDB) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := db.Begins.BeginTx(ctx, opts)
	return lossyTx{tx}, err
}

func (tx lossyTx) Commit(ctx context.Context) error {
	return errors.Join(tx.Tx.Commit(ctx), errLost)
}

// TestProposalsThatMayBeCommittedAreNotAcceptedAgain loses the answer to the commit
// of two proposals without ids.
func TestProposalsThatMayBeCommittedAreNotAcceptedAgain(t *testing.T) {
	t.Parallel()
	d := newSharedFixture(t)
	in := intake.New(lossyDB{d.db}, settings.NewCache(), intake.Config{})
	spans := []context.Context{t.Context(), t.Context()}

	_, undone, err := in.AcceptTogether(spans, d.tenant, []intake.Submitter{d.by(), d.by()}, []*envelope.Proposal{called("", "note"), called("", "note")})

	if undone || !errors.Is(err, errLost) {
		t.Errorf("AcceptTogether = undone %t, %v; want an error after which the proposals may be accepted", undone, err)
	}
	if n := d.count("SELECT count(*) FROM actions WHERE tenant_id = $1", d.tenant.String()); n != 2 {
		t.Errorf("%d actions are stored, want 2", n)
	}
}
