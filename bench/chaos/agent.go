package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	kind "github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// submitBatch is the number of actions in one submission.
	submitBatch = 50
	// submitTimeout bounds one submission, and submitPause is the wait before
	// a failed one is repeated.
	submitTimeout = 10 * time.Second
	submitPause   = 100 * time.Millisecond
)

// agent submits actions, a third of them in SQL. It repeats a failed submission
// with the same external ids, which makes that safe.
type agent struct {
	intake *intake.Intake
	app    *pgxpool.Pool
	tenant envelope.TenantID
	plan   plan

	submitted atomic.Int64 // actions that were accepted
	again     atomic.Int64 // repeated submissions
}

// submit submits all actions: the first half as fast as possible, so that there
// is a backlog, and the rest spread over a time.
func (a *agent) submit(ctx context.Context) error {
	n, over := a.plan.total(), a.plan.over
	batches := (n - n/2 + submitBatch - 1) / submitBatch
	for from := 0; from < n; from += submitBatch {
		if from > n/2 {
			if err := process.Wait(ctx, over/time.Duration(max(batches, 1))); err != nil {
				return err
			}
		}
		if err := a.batch(ctx, from, min(submitBatch, n-from)); err != nil {
			return err
		}
	}
	return nil
}

// batch submits a batch; every third one in SQL.
func (a *agent) batch(ctx context.Context, from, n int) error {
	bodies := a.bodies(from, n)
	submit := a.way(from)
	for try := 0; ; try++ {
		timed, cancel := context.WithTimeout(ctx, submitTimeout)
		err := submit(timed, bodies, from, try)
		cancel()
		switch {
		case err == nil:
			a.submitted.Add(int64(n))
			return nil
		case kind.KindOf(err) == kind.Invalid:
			return fmt.Errorf("submit: %w", err)
		}
		a.again.Add(1)
		if ended := process.Wait(ctx, submitPause); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// repeat submits all actions again, with the same external ids.
func (a *agent) repeat(ctx context.Context) error {
	for from := 0; from < a.plan.total(); from += submitBatch {
		submit := a.way(from)
		if err := submit(ctx, a.bodies(from, min(submitBatch, a.plan.total()-from)), from, 1); err != nil {
			return fmt.Errorf("submit again: %w", err)
		}
	}
	return nil
}

// way returns how a batch is submitted.
func (a *agent) way(from int) func(ctx context.Context, bodies []json.RawMessage, from, try int) error {
	if from/submitBatch%3 == 1 {
		return a.propose
	}
	return a.accept
}

// bodies returns the envelopes of a batch.
func (a *agent) bodies(from, n int) []json.RawMessage {
	bodies := make([]json.RawMessage, n)
	for i := range bodies {
		bodies[i] = fmt.Appendf(nil, `{"type":"mcp.exec","external_id":%q,"tool":{"name":%q,"source":%q},"args":{"n":%d},`+
			`"constraints":{"rate_bucket":%q}}`, externalID(from+i), toolOf(a.plan.class(from+i)), sourceID, from+i, bucketName(from+i))
	}
	return bodies
}

// accept submits a batch as the API does.
func (a *agent) accept(ctx context.Context, bodies []json.RawMessage, from, try int) error {
	proposals := make([]*envelope.Proposal, len(bodies))
	for i, body := range bodies {
		p, err := envelope.Parse(body)
		if err != nil {
			return fmt.Errorf("envelope %d: %w", from+i, err)
		}
		proposals[i] = p
	}
	answers, err := a.intake.Accept(ctx, intake.Submitter{Tenant: a.tenant, Name: "chaos"}, proposals)
	for i, answer := range answers {
		switch {
		case answer.Err != nil:
			return kind.Wrap(answer.Err, kind.Invalid, "envelope %d was refused", from+i)
		case answer.Known && try == 0:
			return kind.New(kind.Invalid, "envelope %d was known before it was submitted", from+i)
		}
	}
	return err
}

// propose submits a batch as an application does that is connected to the database,
// in a transaction of its own. Where the commit fails, it may have happened.
func (a *agent) propose(ctx context.Context, bodies []json.RawMessage, _, _ int) error {
	return pgx.BeginFunc(ctx, a.app, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT countersign.propose_many($1)", bodies)
		return err
	})
}

func externalID(n int) string { return fmt.Sprintf("n-%d", n) }

// sourceID is the counting server in the tenant's catalog.
const sourceID = "counter"

// maxAttempts is more than any fault takes.
const maxAttempts = 20

// newTenant creates a tenant whose only source is the counting server, with the
// tools of the classes under test, and a policy that allows everything.
func newTenant(ctx context.Context, pool *pgxpool.Pool, cache *settings.Cache, name, url string, classes []envelope.Effect) (tenant envelope.TenantID, err error) {
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: url + "/mcp"})
	if err != nil {
		return tenant, err
	}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
		if tenant, err = identity.NewTenant(ctx, tx, fmt.Sprintf("chaos-%s-%d", name, time.Now().UnixMilli())); err != nil {
			return err
		}
		for _, b := range buckets() {
			if err := limits.PutBucket(ctx, tx, tenant, b, "chaos"); err != nil {
				return err
			}
		}
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: sourceID, Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	if err != nil {
		return tenant, fmt.Errorf("create tenant: %w", err)
	}
	log := slog.New(slog.DiscardHandler)
	live := connection.NewPool(connection.Config{Networks: safehttp.Loopback()})
	defer live.Close()
	if err := connection.NewRefresher(pool, cache, live, log).Refresh(ctx, tenant, sourceID); err != nil {
		return tenant, fmt.Errorf("list tools: %w", err)
	}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		for _, effect := range classes {
			key := policy.Key{Source: sourceID, Action: toolOf(effect)}
			if err := catalog.ConfigureTool(ctx, tx, tenant, key, catalog.Overrides{Effect: effect, MaxAttempts: maxAttempts}); err != nil {
				return err
			}
		}
		return settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "chaos")
	})
	if err != nil {
		return tenant, fmt.Errorf("configure tools: %w", err)
	}
	return tenant, nil
}

func toolOf(effect envelope.Effect) string {
	if effect == envelope.EffectKeyed {
		return counting.ToolKeyed
	}
	return counting.ToolOnce
}

// buckets are the buckets that the actions of each class are spread over: two
// without limits, one with a concurrency limit that leases of dead workers
// count towards, and one with a rate.
func buckets() []limits.Bucket {
	return []limits.Bucket{
		{Name: "bucket.0"},
		{Name: "bucket.1"},
		{Name: "bucket.2", Concurrency: 16},
		{Name: "bucket.3", Rate: &limits.Rate{Limit: 200, Per: envelope.Duration(time.Second), Burst: 50}},
	}
}

// bucketName returns the bucket of an action's number.
func bucketName(n int) string {
	all := buckets()
	return all[n/2%len(all)].Name
}
