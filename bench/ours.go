package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/builtin"
	"github.com/countersign-dev/countersign/internal/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/worker"
)

// house is one tenant with the built-in tools and everything allowed.
type house struct {
	pool   *pgxpool.Pool
	tenant envelope.TenantID
	cache  *catalog.Cache
	live   *catalog.Live
	tel    *telemetry.Telemetry
	intake *intake.Intake
}

func newHouse(ctx context.Context, url string, conns int32) (*house, error) {
	if _, err := postgres.Migrate(ctx, url); err != nil {
		return nil, err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: conns, Name: "bench"})
	if err != nil {
		return nil, err
	}
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: "bench", Level: slog.LevelWarn, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	h := &house{
		pool: pool, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: catalog.NewCache(), tel: tel,
		live: catalog.NewLive(catalog.Vault{}, executor.BreakerConfig{}, tel.Log, nil),
	}
	h.intake = intake.New(pool, h.cache, intake.Config{Log: tel.Log})
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", uuid.UUID(h.tenant), "bench-"+h.tenant.String()); err != nil {
			return err
		}
		src := catalog.Source{ID: "countersign", Kind: catalog.KindBuiltin, Enabled: true}
		if err := catalog.PutSource(ctx, tx, h.tenant, src); err != nil {
			return err
		}
		tools, err := builtin.New().List(ctx)
		if err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, h.tenant, src.ID, tools); err != nil {
			return err
		}
		return catalog.PutMode(ctx, tx, h.tenant, "", "*", envelope.ModeAllow, "bench")
	})
	return h, err
}

// proposals makes n proposals of the no-op tool, spread over ten buckets, each
// with an external id of its own.
func proposals(run string, from, n int) ([]*envelope.Proposal, error) {
	out := make([]*envelope.Proposal, n)
	for i := range out {
		raw := fmt.Sprintf(`{"type":"mcp.exec","external_id":"%s-%d","tool":{"name":%q,"source":"countersign"},`+
			`"args":{"n":%d,"note":%q},"constraints":{"rate_bucket":"lane.%d"}}`,
			run, from+i, builtin.ToolNoop, from+i, strings.Repeat("x", 100), (from+i)%10)
		p, err := envelope.Parse([]byte(raw))
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

func (h *house) submit(ctx context.Context, run string, n, batch int) error {
	by := intake.Submitter{Tenant: h.tenant, Name: "bench"}
	for from := 0; from < n; from += batch {
		ps, err := proposals(run, from, min(batch, n-from))
		if err != nil {
			return err
		}
		answers, err := h.intake.Accept(ctx, by, ps)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Err != nil {
				return a.Err
			}
			if a.Known {
				return fmt.Errorf("proposal was known")
			}
		}
	}
	return nil
}

// burn runs one worker until the outbox is empty.
func (h *house) burn(ctx context.Context, cfg worker.Config) (time.Duration, error) {
	cfg.Metrics, cfg.Log = h.tel.Metrics, h.tel.Log
	p := worker.NewPipeline(h.pool, h.cache, h.live, cfg)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- p.Run(ctx) }()
	for {
		var left bool
		if err := h.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM outbox)").Scan(&left); err != nil {
			cancel()
			return 0, err
		}
		if !left {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(began)
	cancel()
	return took, <-done
}

func (h *house) close(ctx context.Context) {
	h.live.Close()
	h.pool.Close()
	_ = h.tel.Shutdown(ctx)
}

var _ = json.Valid
