package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

const tenantName = "bench"

// environment is a tenant with the built-in tools, everything allowed, and one
// process that submits and works.
type environment struct {
	pool   *pgxpool.Pool
	tenant envelope.TenantID
	cache  *settings.Cache
	live   *connection.Pool
	tel    *telemetry.Telemetry
	intake *intake.Intake
	run    string
	url    string
	// poll wakes the worker that runs in this process, if there is one.
	poll atomic.Pointer[func()]
}

// newEnvironment opens a database that newTenant has been called on.
func newEnvironment(ctx context.Context, url string) (*environment, error) {
	return newEnvironmentOf(ctx, url, 8)
}

// newEnvironmentOf has a number of connections.
func newEnvironmentOf(ctx context.Context, url string, conns int32) (*environment, error) {
	pool, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: conns, Name: "bench"})
	if err != nil {
		return nil, err
	}
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: "bench", Level: slog.LevelWarn, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	h := &environment{pool: pool, cache: settings.NewCache(), tel: tel, run: uuid.NewString(), url: url}
	h.live = connection.NewPool(connection.Config{Networks: safehttp.Loopback(), Log: tel.Log})
	h.intake = intake.New(pool, h.cache, intake.Config{Wake: h.wake})
	var id uuid.UUID
	err = pool.QueryRow(ctx, "SELECT tenant_id FROM tenants WHERE name = $1", tenantName).Scan(&id)
	h.tenant = envelope.TenantID(id)
	return h, err
}

// newTenant migrates an empty database and creates the tenant. The no-op tool is
// of class idempotent unless another effect is given. With rules, policy reads
// arguments too.
func newTenant(ctx context.Context, url string, effect envelope.Effect, rules bool) error {
	if _, err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	defer pool.Close()
	return postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
		if _, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", uuid.UUID(tenant), tenantName); err != nil {
			return err
		}
		if err := catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: "countersign", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		tools, err := builtin.New().List(ctx)
		if err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, tenant, "countersign", tools); err != nil {
			return err
		}
		if effect != "" {
			key := policy.Key{Source: "countersign", Action: builtin.ToolNoop}
			if err := catalog.ConfigureTool(ctx, tx, tenant, key, catalog.Overrides{Effect: effect}); err != nil {
				return err
			}
		}
		if err := setLimits(ctx, tx, tenant); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "bench"); err != nil || !rules {
			return err
		}
		return setPolicy(ctx, tx, tenant)
	})
}

// submit parses, decides and inserts n actions of the no-op tool, spread over
// ten buckets, each with an external id of its own. Their texts, which agents
// write, are made as cheaply as the peer's arguments.
func (h *environment) submit(ctx context.Context, from, n, batch int) error {
	by := intake.Submitter{Tenant: h.tenant, Name: "bench"}
	tool := `{"type":"mcp.exec","tool":{"name":"` + builtin.ToolNoop + `","source":"countersign"},"args":{"note":"` + strings.Repeat("x", 100) + `","n":`
	var parser envelope.Parser
	var text []byte
	for end := from + n; from < end; from += batch {
		ps := make([]*envelope.Proposal, min(batch, end-from))
		for i := range ps {
			n := from + i
			text = strconv.AppendInt(append(text[:0], tool...), int64(n), 10)
			text = append(append(append(text, `},"external_id":"`...), h.run...), '-')
			text = append(strconv.AppendInt(text, int64(n), 10), `","constraints":{"rate_bucket":"`...)
			text = append(append(text, bucketName(n)...), `"}}`...)
			p, err := parser.Parse(text)
			if err != nil {
				return err
			}
			ps[i] = p
		}
		answers, err := h.intake.Accept(ctx, by, ps)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Err != nil || a.Known {
				return errors.Join(a.Err, errors.New("a proposal was not accepted"))
			}
		}
	}
	return nil
}

// peerWorkers is the number of workers of River's own bench program.
const peerWorkers = 2000

// workerConfig has the peer's number of workers.
func (h *environment) workerConfig() worker.PipelineConfig {
	return worker.PipelineConfig{ID: "bench", Concurrency: peerWorkers, Metrics: h.tel.Metrics, Log: h.tel.Log}
}

func (h *environment) wake() {
	if poll := h.poll.Load(); poll != nil {
		(*poll)()
	}
}

// whileWorking runs one worker while fn runs.
func (h *environment) whileWorking(ctx context.Context, fn func() error) error {
	return whileRunning(ctx, func(ctx context.Context) error {
		p := worker.NewPipeline(h.pool, h.cache, h.live, h.workerConfig())
		poll := p.Poll
		h.poll.Store(&poll)
		return p.Run(ctx)
	}, fn)
}

// whileFleet runs a worker with a number of concurrent calls, a cache of its own and
// all the work of its command, while fn runs.
func (h *environment) whileFleet(ctx context.Context, concurrency int, fn func() error) error {
	cfg := h.workerConfig()
	cfg.Concurrency, cfg.Grace = concurrency, time.Second
	fleet, err := worker.New(ctx, h.pool, settings.NewCache(), h.live, worker.Config{Pipeline: cfg})
	if err != nil {
		return err
	}
	return whileRunning(ctx, fleet.Run, fn)
}

// whileRunning runs a worker while fn runs.
func whileRunning(ctx context.Context, work func(context.Context) error, fn func() error) error {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()
	err := fn()
	cancel()
	return errors.Join(err, <-ended)
}

func (h *environment) batchSize() int { return 1000 }

func (h *environment) worker() (kind, url string) { return "ours", h.url }

// left counts the waiting actions. Submitted actions that do not wait have
// ended, and the outbox is small, so the query costs next to nothing.
func (h *environment) left(ctx context.Context, _ int) (n int, err error) {
	err = h.pool.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&n)
	return n, err
}

func (h *environment) untilDone(ctx context.Context) error { return untilNone(ctx, h.pool, outboxLeft) }

// burn works until a query finds nothing left, and returns the duration.
func (h *environment) burn(ctx context.Context, left string) (time.Duration, error) {
	return burn(ctx, h, func() error { return untilNone(ctx, h.pool, left) })
}

// burnRate submits n actions and returns the rate at which they are burned
// down.
func (h *environment) burnRate(ctx context.Context, from, n int, left string) (float64, error) {
	if err := h.submit(ctx, from, n, 1000); err != nil {
		return 0, err
	}
	took, err := h.burn(ctx, left)
	return rate(n, took), err
}

const outboxLeft = "SELECT EXISTS (SELECT 1 FROM outbox)"

func (h *environment) close(ctx context.Context) {
	h.live.Close()
	h.pool.Close()
	_ = h.tel.Shutdown(context.WithoutCancel(ctx))
}

// bucketCount is the number of buckets of the envelopes.
const bucketCount = 10

func bucketName(n int) string {
	return "bucket." + strconv.Itoa((n%bucketCount+bucketCount)%bucketCount)
}

// setLimits enables every check that an envelope can meet, so that the
// measurement includes all of them: quiet hours (three days from now), a
// do-not-contact list, trust and scopes. None of them holds the envelopes
// back.
func setLimits(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	for n := range bucketCount {
		if err := limits.PutBucket(ctx, tx, tenant, limits.Bucket{Name: bucketName(n)}, "bench"); err != nil {
			return err
		}
	}
	day := strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3])
	quiet := limits.QuietHours{Scope: limits.QuietTenant, Hours: quiethours.Hours{
		Timezone: "Europe/Berlin", Windows: []quiethours.Window{{Days: []string{day}, From: "11:00", Until: "13:00"}},
	}}
	if err := limits.PutQuietHours(ctx, tx, tenant, quiet, "bench"); err != nil {
		return err
	}
	everyone := limits.Employee{Trust: policy.TrustHigh, Scopes: []string{"*"}}
	if err := limits.PutEmployee(ctx, tx, tenant, everyone, "bench"); err != nil {
		return err
	}
	_, err := contact.PutEntries(ctx, tx, tenant, []contact.Entry{{Value: "nobody@example.org", Reason: "asked"}}, "bench")
	return err
}

// setPolicy makes policy evaluate the arguments of every envelope, and users'
// preferences. Neither holds the envelopes back.
func setPolicy(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	snap, err := settings.NewCache().Current(ctx, tx, tenant)
	if err != nil {
		return err
	}
	rule := settings.Rule{ID: "large", Pattern: "*", Expression: "has(args.n) && args.n < 0 || has(args.note) && size(args.note) > 1000", Mode: string(envelope.ModeDeny), Enabled: true}
	if err := settings.PutRule(ctx, tx, snap, rule, "bench"); err != nil {
		return err
	}
	return settings.PutPreference(ctx, tx, tenant, settings.Preference{Pattern: "*:switched.off"}, "bench")
}
