package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// planNode is a part of a plan as auto_explain writes it.
type planNode struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Plans    []planNode
}

// read returns the number of rows of actions that a plan reads, and whether it
// reads the whole table. It adds the indexes that the plan reads to indexes.
func (n planNode) read(indexes map[string]bool) (rows float64, whole bool) {
	if n.Relation == "actions" {
		rows, whole = (n.Rows+n.Filtered)*n.Loops, n.Type == "Seq Scan"
		indexes[n.Index] = true
	}
	for _, child := range n.Plans {
		below, all := child.read(indexes)
		rows, whole = rows+below, whole || all
	}
	return rows, whole
}

// TestTheInboxReadsOneIndex covers every order and filter, with and without
// statistics: a page reads about as many rows as it has, no matter how many are
// pending. A filter without an index of its own reads the inbox's index only.
func TestTheInboxReadsOneIndex(t *testing.T) {
	t.Parallel()
	const waiting, most = 20_000, 51
	pool := dbtest.DB(t)
	o := fixtureIn(t, pool)
	o.propose(1)
	o.exec("ALTER TABLE actions SET (autovacuum_enabled = off)") // compare the plans before and after ANALYZE
	o.many(waiting)
	service, plans := explaining(t, pool)
	first := func(q approval.InboxQuery) approval.InboxQuery { q.Most = most; return q }
	for _, when := range []string{"never analysed", "vacuumed"} {
		if when == "vacuumed" {
			o.vacuum(pool)
		}
		for name, test := range map[string]struct {
			query approval.InboxQuery
			index string
			most  float64
		}{
			"oldest":           {first(approval.InboxQuery{}), "actions_inbox", 4 * most},
			"newest":           {first(approval.InboxQuery{Order: approval.InboxNewest}), "actions_inbox", 4 * most},
			"expiry":           {first(approval.InboxQuery{Order: approval.InboxExpiry}), "actions_inbox_expiry", 4 * most},
			"risk":             {first(approval.InboxQuery{Order: approval.InboxRisk}), "actions_inbox_risk", 4 * most},
			"session":          {first(approval.InboxQuery{Order: approval.InboxSession}), "actions_inbox_session", 4 * most},
			"behind a session": {first(approval.InboxQuery{Order: approval.InboxSession, After: &approval.InboxPlace{Session: "s-500"}}), "actions_inbox_session", 4 * most},
			"tool":             {first(approval.InboxQuery{Order: approval.InboxTool}), "actions_inbox_tool", 4 * most},
			"behind a tool":    {first(approval.InboxQuery{Order: approval.InboxTool, After: &approval.InboxPlace{Tool: policy.Key{Source: "src", Action: "ab"}}}), "actions_inbox_tool", 4 * most},
			"rare tool":        {first(approval.InboxQuery{InboxFilter: approval.InboxFilter{Tool: "rare"}}), "actions_inbox", waiting + 4*most},
			"high risks":       {first(approval.InboxQuery{InboxFilter: approval.InboxFilter{Risks: []envelope.Risk{envelope.RiskHigh}}, Order: approval.InboxRisk}), "actions_inbox_risk", waiting/5 + 4*most},
		} {
			*plans = nil
			items, err := service.Inbox(t.Context(), o.decider("ada"), test.query)
			if err != nil {
				t.Fatal(err)
			}
			if name != "rare tool" && len(items) != most || len(*plans) != 1 {
				t.Fatalf("%s, %s: %d items, %d plans", name, when, len(items), len(*plans))
			}
			indexes := make(map[string]bool)
			rows, whole := (*plans)[0].read(indexes)
			if whole || !indexes[test.index] || rows > test.most {
				t.Errorf("%s, %s: %.0f rows read by %v, want at most %.0f by %s", name, when, rows, indexes, test.most, test.index)
			}
		}
	}
}

// many adds n pending actions of all risks, and as many that are not pending.
func (o fixture) many(n int) {
	o.t.Helper()
	o.exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version, tool_digest,
			approval_state, approval_expires_at, bucket_id, max_attempts, created_at, session_id, automation_id)
		SELECT a.tenant_id, (lpad(to_hex(1900000000000 + i % $2), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid, a.content_digest, a.source_id, a.tool_name,
			jsonb_build_object('to', 'ana' || i || '@example.org', 'body', repeat('text ', 100)), (ARRAY['low', 'low', 'medium', 'medium', 'high'])[1 + i % 5], a.effect, a.decision_id,
			a.config_version, a.tool_digest, CASE WHEN i <= $2 THEN 'required' ELSE 'auto' END, now() + (i * 7919 % 100000 + 3600) * interval '1 second', a.bucket_id, a.max_attempts, now(), 's-' || i % 1000, 'a-' || i % 50
		FROM actions a, generate_series(1, 2 * $2) i
		WHERE a.tenant_id = $1`, o.tenant.String(), n)
	o.exec("INSERT INTO approvals (tenant_id, action_id, needed) SELECT tenant_id, action_id, 1 FROM actions WHERE approval_state = 'required' ON CONFLICT DO NOTHING")
}

// vacuum updates the planner's statistics and the visibility map.
func (o fixture) vacuum(pool *pgxpool.Pool) {
	o.t.Helper()
	if _, err := pool.Exec(o.t.Context(), "VACUUM ANALYZE actions, approvals"); err != nil {
		o.t.Fatal(err)
	}
}

// explaining returns a service on the same database, and the plans of the
// statement that lists the inbox.
func explaining(t testing.TB, pool *pgxpool.Pool) (*approval.Service, *[]planNode) {
	t.Helper()
	plans := new([]planNode)
	cfg := pool.Config()
	cfg.MaxConns = 1
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		var e struct {
			Query string `json:"Query Text"`
			Plan  planNode
		}
		_, text, ok := strings.Cut(n.Message, "plan:\n")
		if ok && json.Unmarshal([]byte(text), &e) == nil && strings.Contains(e.Query, "name: InboxItems") {
			*plans = append(*plans, e.Plan)
		}
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `LOAD 'auto_explain'; SET plan_cache_mode = auto; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
			SET auto_explain.log_timing = off; SET auto_explain.log_format = json; SET auto_explain.log_level = notice`)
		return err
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return approval.New(db, settings.NewCache(), approval.Config{}), plans
}

// BenchmarkInbox reads a page of 50, and the counts, with 10,000 and 100,000
// pending actions. Measured with PostgreSQL 15.18 on 2 processors under load
// (nine times as many runnable processes): the median page took 12 to 26 ms,
// and the counts 85 ms, with 100,000 no more than with 10,000.
func BenchmarkInbox(b *testing.B) {
	for _, waiting := range []int{10_000, 100_000} {
		pool := dbtest.DB(b)
		o := fixtureIn(b, pool)
		o.propose(1)
		o.many(waiting)
		o.vacuum(pool)
		for name, read := range map[string]func() error{
			"page": func() error {
				_, err := o.service.Inbox(b.Context(), o.decider("ada"), approval.InboxQuery{Most: 51})
				return err
			},
			"page by risk": func() error {
				_, err := o.service.Inbox(b.Context(), o.decider("ada"), approval.InboxQuery{Most: 51, Order: approval.InboxRisk, Preview: 2048})
				return err
			},
			"counts": func() error {
				_, err := o.service.InboxCounts(b.Context(), o.tenant, approval.InboxFilter{}, time.Now())
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s of %d", name, waiting), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					if err := read(); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			})
		}
	}
}
