package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

const (
	// slowCalls are due to a tool that takes slowFor, in a worker of slowSlots.
	slowCalls = 5000
	slowFor   = 30 * time.Second
	slowSlots = 100
)

// measureSlowTool measures how soon quick tools are called, one call at a time,
// while a tool that takes 30 seconds has thousands of due calls and holds every
// slot of the one worker: for another tenant, and for another source of the
// tenant itself. It is compared with the same before the slow calls.
func measureSlowTool(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		called := make(chan time.Time, 1)
		quick := toolServer(called)
		defer quick.Close()
		slow, running := slowServer(slowFor)
		defer slow.Close()
		other, err := addTenant(ctx, h, "other")
		if err != nil {
			return err
		}
		for _, of := range []struct {
			tenant envelope.TenantID
			id     string
			server *httptest.Server
		}{{other, "clock", quick}, {h.tenant, "clock", quick}, {h.tenant, "slow", slow}} {
			if err := addMCP(ctx, h, of.tenant, of.id, of.server.URL); err != nil {
				return err
			}
		}
		waker := worker.NewWaker(ctx, h.pool, h.tel.Log)
		defer waker.Close()
		in := intake.New(h.pool, h.cache, intake.Config{Wake: waker.Wake})
		return h.whileFleet(ctx, slowSlots, func() error { return besideSlow(ctx, s, h, in, other, called, running) })
	})
}

// besideSlow measures before and after the slow calls were submitted.
func besideSlow(ctx context.Context, s *suite, h *environment, in *intake.Intake, other envelope.TenantID, called <-chan time.Time, running *atomic.Int64) error {
	tenants := []struct {
		name string
		id   envelope.TenantID
	}{{"another tenant", other}, {"another source", h.tenant}}
	quiet := make([]float64, len(tenants))
	for i, t := range tenants {
		var err error
		if quiet[i], err = p99(ctx, in, t.id, "quiet", called); err != nil {
			return err
		}
	}
	if _, err := submitSlow(ctx, in, h.tenant, "slow", slowCalls); err != nil {
		return err
	}
	for running.Load() < slowSlots {
		time.Sleep(10 * time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i, t := range tenants {
		beside, err := p99(ctx, in, t.id, "beside", called)
		if err != nil {
			return err
		}
		s.rep.note("%s: p99 of submit → tool called %.1f ms while quiet, %.1f ms beside %d slow calls, %d of them running", t.name, quiet[i], beside, slowCalls, running.Load())
		s.rep.single("slow tool, "+t.name, "× quiet", beside/quiet[i], map[string]float64{"quiet_ms": quiet[i], "beside_ms": beside, "running": float64(running.Load())})
	}
	return nil
}

func p99(ctx context.Context, in *intake.Intake, tenant envelope.TenantID, name string, called <-chan time.Time) (float64, error) {
	took, err := sample(ctx, called, submitTouch(in, tenant, name))
	if err != nil {
		return 0, err
	}
	_, worst := quantiles(took)
	return worst, nil
}

// submitSlow submits n calls of the slow tool, named by a prefix.
func submitSlow(ctx context.Context, in *intake.Intake, tenant envelope.TenantID, name string, n int) ([]envelope.ActionID, error) {
	const batch = 500
	ids := make([]envelope.ActionID, 0, n)
	for len(ids) < n {
		bodies := make([][]byte, min(batch, n-len(ids)))
		for i := range bodies {
			bodies[i] = fmt.Appendf(nil, `{"type":"mcp.exec","external_id":"%s-%d","tool":{"name":"slow","source":"slow"},"args":{}}`, name, len(ids)+i)
		}
		proposed, err := propose(ctx, in, tenant, bodies...)
		if err != nil {
			return nil, err
		}
		ids = append(ids, proposed...)
	}
	return ids, nil
}

// slowServer is an MCP server of one tool that takes some time, and the number of
// its calls that are running.
func slowServer(takes time.Duration) (*httptest.Server, *atomic.Int64) {
	running := new(atomic.Int64)
	s := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "slow", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-ctx.Done():
			case <-time.After(takes):
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)), running
}

// addTenant makes a tenant that allows everything.
func addTenant(ctx context.Context, h *environment, name string) (envelope.TenantID, error) {
	return postgres.InTxReturning(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) (envelope.TenantID, error) {
		tenant, err := identity.NewTenant(ctx, tx, name)
		if err != nil {
			return tenant, err
		}
		return tenant, settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "bench")
	})
}

// addMCP registers an MCP server as a source of a tenant and lists its tools.
func addMCP(ctx context.Context, h *environment, tenant envelope.TenantID, id, url string) error {
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: url, Timeout: new(envelope.Duration(2 * slowFor))})
	if err != nil {
		return err
	}
	err = postgres.InTx(ctx, h.pool, postgres.API(tenant), func(tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: id, Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	if err != nil {
		return err
	}
	return connection.NewRefresher(h.pool, h.cache, h.live, h.tel.Log).Refresh(ctx, tenant, id)
}
