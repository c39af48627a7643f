// Package load submits numbered actions for the counting server, as an agent and an
// application do, and makes the tenant that they belong to. It does not judge what
// becomes of them.
package load

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
	// Batch is the number of actions in one submission.
	Batch = 50
	// submitTimeout bounds one submission, and submitPause is the wait before
	// a failed one is repeated.
	submitTimeout = 10 * time.Second
	submitPause   = 100 * time.Millisecond
)

// Agent submits actions, a third of them in SQL. It repeats a failed submission
// with the same external ids, which makes that safe.
type Agent struct {
	intake  *intake.Intake
	app     *pgxpool.Pool
	tenant  envelope.TenantID
	classes []envelope.Effect

	// Submitted counts the actions that were accepted, Again the repeated submissions.
	Submitted, Again atomic.Int64
}

// New returns the agent of a tenant. Its actions have the classes in turn; app has
// connections of an application.
func New(intake *intake.Intake, app *pgxpool.Pool, tenant envelope.TenantID, classes []envelope.Effect) *Agent {
	return &Agent{intake: intake, app: app, tenant: tenant, classes: classes}
}

// Submit submits a batch; every third one in SQL.
func (a *Agent) Submit(ctx context.Context, from, n int) error {
	bodies := a.bodies(from, n)
	submit := a.way(from)
	for try := 0; ; try++ {
		timed, cancel := context.WithTimeout(ctx, submitTimeout)
		err := submit(timed, bodies, from, try)
		cancel()
		switch {
		case err == nil:
			a.Submitted.Add(int64(n))
			return nil
		case kind.KindOf(err) == kind.Invalid:
			return fmt.Errorf("submit: %w", err)
		}
		a.Again.Add(1)
		if ended := process.Wait(ctx, submitPause); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// Repeat submits n actions again, with the same external ids.
func (a *Agent) Repeat(ctx context.Context, first, n int) error {
	for from := first; from < first+n; from += Batch {
		submit := a.way(from)
		if err := submit(ctx, a.bodies(from, min(Batch, first+n-from)), from, 1); err != nil {
			return fmt.Errorf("submit again: %w", err)
		}
	}
	return nil
}

// way returns how a batch is submitted.
func (a *Agent) way(from int) func(ctx context.Context, bodies []json.RawMessage, from, try int) error {
	if from/Batch%3 == 1 {
		return a.propose
	}
	return a.accept
}

// bodies returns the envelopes of a batch.
func (a *Agent) bodies(from, n int) []json.RawMessage {
	bodies := make([]json.RawMessage, n)
	for i := range bodies {
		bodies[i] = fmt.Appendf(nil, `{"type":"mcp.exec","external_id":%q,"tool":{"name":%q,"source":%q},"args":{"n":%d},`+
			`"constraints":{"rate_bucket":%q}}`, ExternalID(from+i), toolOf(a.classes[(from+i)%len(a.classes)]), sourceID, from+i, bucketName(from+i))
	}
	return bodies
}

// accept submits a batch as the API does.
func (a *Agent) accept(ctx context.Context, bodies []json.RawMessage, from, try int) error {
	proposals := make([]*envelope.Proposal, len(bodies))
	for i, body := range bodies {
		p, err := envelope.Parse(body)
		if err != nil {
			return fmt.Errorf("envelope %d: %w", from+i, err)
		}
		proposals[i] = p
	}
	answers, err := a.intake.Accept(ctx, intake.Submitter{Tenant: a.tenant, Name: "agent"}, proposals)
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
func (a *Agent) propose(ctx context.Context, bodies []json.RawMessage, _, _ int) error {
	return pgx.BeginFunc(ctx, a.app, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT countersign.propose_many($1)", bodies)
		return err
	})
}

// ExternalID returns the external id of an action's number.
func ExternalID(n int) string { return fmt.Sprintf("n-%d", n) }

// sourceID is the counting server in the tenant's catalog.
const sourceID = "counter"

// maxAttempts is more than any fault takes.
const maxAttempts = 20

// NewTenant creates a tenant whose only source is the counting server, with the
// tools of the classes under test, and a policy that allows everything.
func NewTenant(ctx context.Context, pool *pgxpool.Pool, cache *settings.Cache, name, url string, classes []envelope.Effect) (tenant envelope.TenantID, err error) {
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: url + "/mcp"})
	if err != nil {
		return tenant, err
	}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
		if tenant, err = identity.NewTenant(ctx, tx, fmt.Sprintf("%s-%d", name, time.Now().UnixMilli())); err != nil {
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
