package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/worker"
)

// measureLatency submits one action at a time to an idle worker and measures the
// time until its tool, behind an MCP server over HTTP, is called. The worker
// shares only the database: the wake-up goes over River.
func measureLatency(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		called := make(chan time.Time, 1)
		tools := toolServer(called)
		defer tools.Close()
		waker := worker.NewWaker(ctx, h.pool, h.tel.Log)
		defer waker.Close()
		in := intake.New(h.pool, h.cache, intake.Config{Wake: waker.Wake})
		if err := addMCP(ctx, h, h.tenant, "clock", tools.URL); err != nil {
			return err
		}
		return h.whileFleet(ctx, slowSlots, func() error {
			took, err := sample(ctx, called, submitTouch(in, h.tenant, "latency"))
			if err == nil {
				s.rep.quantiles("submit → tool called", took)
			}
			return err
		})
	})
}

// sample submits 300 actions of the tool touch, one after the other, and measures in
// milliseconds the time until each is called. Twenty go before, unmeasured.
func sample(ctx context.Context, called <-chan time.Time, submit func(ctx context.Context, i int) error) ([]float64, error) {
	const samples, warm = 300, 20
	took := make([]float64, warm+samples)
	for i := range took {
		began := time.Now()
		if err := submit(ctx, i); err != nil {
			return nil, err
		}
		select {
		case at := <-called:
			took[i] = float64(at.Sub(began).Microseconds()) / 1000
		case <-time.After(10 * time.Second):
			return nil, errors.New("the tool was not called")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		time.Sleep(time.Duration(15+i%17) * time.Millisecond) // idle again, out of step with any timer
	}
	return took[warm:], nil
}

// touch returns an envelope of the tool touch.
func touch(name string, i int) []byte {
	return fmt.Appendf(nil, `{"type":"mcp.exec","external_id":"%s-%d","tool":{"name":"touch","source":"clock"},"args":{}}`, name, i)
}

// submitTouch returns a function that submits an action of the tool touch.
func submitTouch(in *intake.Intake, tenant envelope.TenantID, name string) func(ctx context.Context, i int) error {
	return func(ctx context.Context, i int) error {
		_, err := propose(ctx, in, tenant, touch(name, i))
		return err
	}
}

// propose proposes envelopes, as one batch, which intake must accept, and returns
// their actions.
func propose(ctx context.Context, in *intake.Intake, tenant envelope.TenantID, bodies ...[]byte) ([]envelope.ActionID, error) {
	ps, ids := make([]*envelope.Proposal, len(bodies)), make([]envelope.ActionID, len(bodies))
	for i, body := range bodies {
		var err error
		if ps[i], err = envelope.Parse(body); err != nil {
			return nil, err
		}
	}
	answers, err := in.Accept(ctx, intake.Submitter{Tenant: tenant, Name: "bench"}, ps)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if a.Err != nil || a.Known {
			return nil, errors.Join(a.Err, errors.New("a proposal was not accepted"))
		}
		ids[i] = a.Action
	}
	return ids, nil
}

// quantiles sorts times, and returns their median and 99th percentile.
func quantiles(took []float64) (p50, p99 float64) {
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

func toolServer(called chan<- time.Time) *httptest.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "touch", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			called <- time.Now()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
}
