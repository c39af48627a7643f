package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
)

const (
	// openRate is the number of proposals per second in an open loop, for openFor.
	openRate = 500
	openFor  = 4 * time.Second
	// manySessions make sessionCalls calls each.
	manySessions = 200
	sessionCalls = 20
	// idleWaiters wait for actions that do not end, for idleFor.
	idleWaiters = 1000
	idleFor     = 10 * time.Second
	// tokenWaiters is the number of waits with one token.
	tokenWaiters = 200
	// manyConnections lets a token have all of these connections.
	manyConnections = "2000"
)

// openLoop measures proposals that arrive at a fixed rate, whether or not those
// before them were answered.
func (c *restCaller) openLoop(ctx context.Context, rep *report) error {
	n := int(openFor.Seconds() * openRate)
	took, errs := make([]float64, n), make([]error, n)
	var wg sync.WaitGroup
	arrivals := time.NewTicker(time.Second / openRate)
	defer arrivals.Stop()
	for i := range n {
		select {
		case <-arrivals.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		wg.Go(func() { took[i], errs[i] = c.propose(ctx, "") })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	p50, p99 := quantiles(took)
	rep.aimed(fmt.Sprintf("one proposal by REST, %d a second arriving, p50", openRate), "ms", p50, 3, map[string]float64{"p99_ms": p99})
	return nil
}

// decisions measures approvals, until the tool is called and until the answer of the
// request that approves and waits for the end.
func (c *restCaller) decisions(ctx context.Context, h *environment, rep *report, called <-chan time.Time) error {
	if err := h.setMode(ctx, envelope.ModeRequireApproval); err != nil {
		return err
	}
	var untilCalled, untilAnswered []float64
	for i := range singly {
		proposed, err := propose(ctx, h.intake, h.tenant, touch("approved", i))
		if err != nil {
			return err
		}
		began := time.Now()
		took, _, err := c.send(ctx, http.MethodPost, c.base+"/api/v1/actions/"+proposed[0].String()+"/approve?wait=5s", []byte(`{}`), http.StatusOK)
		if err != nil {
			return err
		}
		select {
		case at := <-called:
			untilCalled, untilAnswered = append(untilCalled, float64(at.Sub(began).Microseconds())/1000), append(untilAnswered, took)
		default:
			return fmt.Errorf("the tool was not called within the wait of an approval")
		}
	}
	p50, p99 := quantiles(untilCalled)
	rep.aimed("approve → tool called, p50", "ms", p50, 10, map[string]float64{"p99_ms": p99})
	p50, p99 = quantiles(untilAnswered)
	rep.aimed("approve and wait → answer, p50", "ms", p50, 15, map[string]float64{"p99_ms": p99})
	return h.setMode(ctx, envelope.ModeAllow)
}

// callInSessions makes calls in many concurrent MCP sessions. The first error ends
// it.
func callInSessions(ctx context.Context, rep *report, base, token string) error {
	sessions, done, err := connect(ctx, manySessions, mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: bearer(token), DisableStandaloneSSE: true})
	defer done()
	if err != nil {
		return err
	}
	took, rate, err := several(ctx, manySessions, manySessions*sessionCalls, callTool(sessions, "slow__slow"))
	if err != nil {
		return err
	}
	rep.single(fmt.Sprintf("%d MCP sessions × %d calls, without an error", manySessions, sessionCalls), "/s", rate,
		quantilesMS(took))
	return nil
}

// idle measures the processor time of an API for requests that wait for an action
// which does not end.
func (c *restCaller) idle(ctx context.Context, h *environment, rep *report, api *process.API) error {
	before := process.TreeTime(api.Child.PID())
	if err := process.Wait(ctx, idleFor); err != nil {
		return err
	}
	alone := process.TreeTime(api.Child.PID()) - before
	if err := h.setMode(ctx, envelope.ModeRequireApproval); err != nil {
		return err
	}
	proposed, err := propose(ctx, h.intake, h.tenant, touch("idle", 0))
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	errs := make([]error, idleWaiters)
	var wg sync.WaitGroup
	var token string
	for i := range idleWaiters {
		if i%tokenWaiters == 0 {
			if token, err = h.owner(ctx); err != nil {
				cancel()
				wg.Wait()
				return err
			}
		}
		caller := &restCaller{base: c.base, token: token, http: c.http}
		wg.Go(func() { errs[i] = caller.awaitEnd(waiting, proposed[0]) })
	}
	// The connections open first.
	err = process.Wait(ctx, 3*time.Second)
	before = process.TreeTime(api.Child.PID())
	if err == nil {
		err = process.Wait(ctx, idleFor)
	}
	used := process.TreeTime(api.Child.PID()) - before
	cancel()
	wg.Wait()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	rep.aimed(fmt.Sprintf("processor time of the API with %d idle waiters", idleWaiters), "% of a core", 100*(used-alone).Seconds()/idleFor.Seconds(), 1,
		map[string]float64{"without_waiters": 100 * alone.Seconds() / idleFor.Seconds()})
	return h.setMode(ctx, envelope.ModeAllow)
}

// awaitEnd waits for the end of an action until ctx ends. An answer before that is an
// error.
func (c *restCaller) awaitEnd(ctx context.Context, action envelope.ActionID) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/actions/"+action.String()+"/wait?wait=1m", bytes.NewReader(nil))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body) // part of the message below
	return fmt.Errorf("a wait was answered early: %s: %.200s", res.Status, text)
}
