package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/bench/machine"
	"github.com/countersign-dev/countersign/bench/process"
)

const (
	// singly is the number of requests made one at a time, and together the number
	// made by several callers, of which proposers propose and agents call tools.
	singly    = 200
	together  = 4000
	proposers = 64
	agents    = 16
	readers   = 32
)

// measureHTTP measures single requests as agents make them: proposals over REST
// compared with a bare handler with one INSERT, and calls through /mcp compared
// with the same calls directly to the tool's server and by a proxy. The API is a
// separate process.
func measureHTTP(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		server, _ := slowServer(0)
		defer server.Close()
		called := make(chan time.Time, 1)
		clock := toolServer(called)
		defer clock.Close()
		if err := addMCP(ctx, h, h.tenant, "clock", clock.URL); err != nil {
			return err
		}
		if err := addMCP(ctx, h, h.tenant, "slow", server.URL); err != nil {
			return err
		}
		return h.withAPI(ctx, func(api *process.API, token string) error {
			s.rep.note("load before: %s", machine.Load())
			caller := &restCaller{base: api.Base, token: token, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: proposers}}}
			if err := s.part("proposals", func() error { return proposeSingly(ctx, s, h.pool, caller) }); err != nil {
				return err
			}
			return h.whileFleet(ctx, peerWorkers, func() error {
				if err := untilNone(ctx, h.pool, outboxLeft); err != nil {
					return err
				}
				for _, part := range []struct {
					name    string
					measure func() error
				}{
					{"waits", func() error { return caller.waits(ctx, s.rep) }},
					{"decisions", func() error { return caller.decisions(ctx, h, s.rep, called) }},
					{"calls", func() error { return callTools(ctx, s, h, api, server.URL, token) }},
					{"sessions", func() error { return callInSessions(ctx, s.rep, api.Base, token) }},
					{"reads", func() error { return caller.reads(ctx, s.rep) }},
					{"idle", func() error { return caller.idle(ctx, h, s.rep, api) }},
				} {
					if err := s.part(part.name, part.measure); err != nil {
						return err
					}
				}
				return nil
			})
		}, "COUNTERSIGN_ADDRESS_CONNECTIONS="+manyConnections, "COUNTERSIGN_TOKEN_CONNECTIONS="+manyConnections)
	})
}

// restCaller proposes over REST.
type restCaller struct {
	base, token string
	http        *http.Client
}

// propose proposes a call of the tool and returns the duration in milliseconds.
func (c *restCaller) propose(ctx context.Context, query string) (float64, error) {
	body := fmt.Appendf(nil, `{"type":"mcp.exec","external_id":%q,"tool":{"name":"slow","source":"slow"},"args":{}}`, uuid.NewString())
	return c.post(ctx, c.base+"/api/v1/actions"+query, body)
}

func (c *restCaller) post(ctx context.Context, url string, body []byte) (float64, error) {
	took, _, err := c.send(ctx, http.MethodPost, url, body, http.StatusCreated)
	return took, err
}

// send sends a request that must return status, and returns the duration in
// milliseconds, and the body.
func (c *restCaller) send(ctx context.Context, method, url string, body []byte, status int) (took float64, text []byte, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	text, err = io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%s %s: %s: %.300s", method, url, res.Status, text)
	}
	return float64(time.Since(began).Microseconds()) / 1000, text, err
}

// reads measures the reads of pages and agents, with several in flight.
func (c *restCaller) reads(ctx context.Context, rep *report) error {
	_, text, err := c.send(ctx, http.MethodGet, c.base+"/api/v1/actions?limit=1", nil, http.StatusOK)
	if err != nil {
		return err
	}
	var listed struct {
		Items []struct {
			Envelope struct {
				ActionID string `json:"action_id"`
			} `json:"envelope"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &listed); err != nil || len(listed.Items) == 0 {
		return fmt.Errorf("no action is listed: %w", err)
	}
	for _, read := range []struct {
		path string
		aim  float64
	}{{"/actions/" + listed.Items[0].Envelope.ActionID, 6000}, {"/actions?limit=50", 2500}, {"/inbox?limit=50", 2500}, {"/tools", 2500}} {
		took, rate, err := several(ctx, readers, together, func(ctx context.Context, _ int) (float64, error) {
			took, _, err := c.send(ctx, http.MethodGet, c.base+"/api/v1"+read.path, nil, http.StatusOK)
			return took, err
		})
		if err != nil {
			return err
		}
		rep.aimed("GET "+strings.ReplaceAll(read.path, listed.Items[0].Envelope.ActionID, "{id}")+", "+strconv.Itoa(readers)+" in flight", "/s", rate, read.aim,
			quantilesMS(took))
	}
	return nil
}

// waits measures proposals whose request stays open until the action has ended.
func (c *restCaller) waits(ctx context.Context, rep *report) error {
	took, _, err := several(ctx, 1, singly, func(ctx context.Context, _ int) (float64, error) { return c.propose(ctx, "?wait=5s") })
	if err != nil {
		return err
	}
	rep.aimed("POST /actions?wait, one at a time, p50", "ms", quantile(took, 50), 10, map[string]float64{"p99_ms": quantile(took, 99)})
	return nil
}

// proposeSingly measures proposals without a worker.
func proposeSingly(ctx context.Context, s *suite, pool *pgxpool.Pool, c *restCaller) error {
	bare, err := bareHandler(ctx, pool)
	if err != nil {
		return err
	}
	defer bare.Close()
	peer := *c
	direct := func(ctx context.Context, _ int) (float64, error) { return peer.post(ctx, bare.URL, []byte(`{}`)) }
	ours := func(ctx context.Context, _ int) (float64, error) { return c.propose(ctx, "") }
	took, _, err := several(ctx, 1, singly, ours)
	if err != nil {
		return err
	}
	s.rep.aimed("one proposal by REST, p50", "ms", quantile(took, 50), 3, map[string]float64{"p99_ms": quantile(took, 99)})
	if err := c.openLoop(ctx, s.rep); err != nil {
		return err
	}
	var our, their []float64
	for range max(1, s.rounds) {
		_, rate, err := several(ctx, proposers, together, direct)
		if err != nil {
			return err
		}
		their = append(their, rate)
		if _, rate, err = several(ctx, proposers, together, ours); err != nil {
			return err
		}
		our = append(our, rate)
	}
	s.rep.against("one INSERT", "proposals by REST, "+strconv.Itoa(proposers)+" in flight", "/s", our, their, nil)
	return nil
}

// bareHandler is an HTTP server that inserts a row for each request.
func bareHandler(ctx context.Context, pool *pgxpool.Pool) (*httptest.Server, error) {
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS countersign_data.bare (id uuid PRIMARY KEY, body jsonb NOT NULL)"); err != nil {
		return nil, err
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = pool.Exec(r.Context(), "INSERT INTO countersign_data.bare (id, body) VALUES ($1, $2)", uuid.Must(uuid.NewV7()), body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})), nil
}

// part makes a measurement of the run http, unless -only names others.
func (s *suite) part(name string, measure func() error) error {
	if s.only != "" && !slices.Contains(strings.Split(s.only, ","), name) {
		return nil
	}
	return measure()
}

// callTools measures single calls through /mcp and straight to the tool's server, and
// several in flight through /mcp and through a bare proxy in turn, in every round.
func callTools(ctx context.Context, s *suite, h *environment, api *process.API, direct, token string) error {
	straight, done, err := connect(ctx, agents, mcp.StreamableClientTransport{Endpoint: direct, HTTPClient: bearer(token)})
	defer done()
	if err != nil {
		return err
	}
	front, close, err := connect(ctx, agents, mcp.StreamableClientTransport{Endpoint: api.Base + "/mcp", HTTPClient: bearer(token)})
	defer close()
	if err != nil {
		return err
	}
	peers, ours := callTool(straight, "slow"), callTool(front, "slow__slow")
	one, _, err := several(ctx, 1, singly, ours)
	if err != nil {
		return err
	}
	peer, _, err := several(ctx, 1, singly, peers)
	if err != nil {
		return err
	}
	s.rep.aimed("MCP call over a direct one, p50", "ms", quantile(one, 50)-quantile(peer, 50), 10,
		map[string]float64{"front_ms": quantile(one, 50), "direct_ms": quantile(peer, 50)})
	s.rep.aimed("MCP call, one at a time, p99", "ms", quantile(one, 99), 20, map[string]float64{"direct_ms": quantile(peer, 99)})
	proxy, stopProxy := bareProxy(straight[0])
	defer stopProxy()
	proxied, closeProxied, err := connect(ctx, agents, mcp.StreamableClientTransport{Endpoint: proxy, HTTPClient: bearer(token)})
	defer closeProxied()
	if err != nil {
		return err
	}
	var our, their, p50 []float64
	for round := range max(1, s.rounds) {
		_, rate, err := several(ctx, agents, together, callTool(proxied, "slow"))
		if err != nil {
			return err
		}
		their = append(their, rate)
		before, err := h.spent(ctx, api)
		if err != nil {
			return err
		}
		took, rate, err := several(ctx, agents, together, ours)
		if err != nil {
			return err
		}
		after, err := h.spent(ctx, api)
		if err != nil {
			return err
		}
		our, p50 = append(our, rate), append(p50, quantile(took, 50))
		s.rep.note("round %d: %.0f/s, p50 %.1f ms; a call's processor time in ms: API %.2f, this process %.2f, PostgreSQL %.2f", round+1, rate,
			quantile(took, 50), perMessage(after[0]-before[0], together), perMessage(after[1]-before[1], together), perMessage(after[2]-before[2], together))
	}
	s.rep.aimed(strconv.Itoa(agents)+" MCP calls in flight, p50", "ms", median(p50), 15, nil)
	s.rep.against("bare proxy", strconv.Itoa(agents)+" MCP calls in flight", "/s", our, their, nil)
	return nil
}

// bareProxy starts a server of MCP that only passes each call on to a session, and answers
// as /mcp does: in JSON, without a session of its own.
func bareProxy(to *mcp.ClientSession) (url string, stop func()) {
	server := mcp.NewServer(&mcp.Implementation{Name: "proxy", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "slow", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return to.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
	})
	over := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	return over.URL, over.Close
}

// spent returns the processor time that the API, this process and PostgreSQL have used.
func (h *environment) spent(ctx context.Context, api *process.API) (used [3]time.Duration, err error) {
	var backend int
	err = h.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend)
	// The API is a child of this process.
	return [3]time.Duration{process.TreeTime(api.Child.PID()), processorTime(), process.TreeTime(process.Parent(backend))}, err
}

// connect opens n sessions of MCP, each with a client of its own. done closes them,
// also after an error.
func connect(ctx context.Context, n int, over mcp.StreamableClientTransport) (sessions []*mcp.ClientSession, done func(), err error) {
	done = func() {
		for _, session := range sessions {
			_ = session.Close()
		}
	}
	for i := range n {
		client, transport := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil), over
		session, err := client.Connect(ctx, &transport, nil)
		if err != nil {
			return sessions, done, fmt.Errorf("session %d of %s: %w", i, over.Endpoint, err)
		}
		sessions = append(sessions, session)
	}
	return sessions, done, nil
}

// callTool returns a function that calls a tool in the session of a caller, and
// returns the duration in milliseconds.
func callTool(sessions []*mcp.ClientSession, tool string) func(ctx context.Context, caller int) (float64, error) {
	return func(ctx context.Context, caller int) (float64, error) {
		began := time.Now()
		res, err := sessions[caller].CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"id": uuid.NewString()}})
		if err == nil && res.IsError {
			err = fmt.Errorf("the call of %s in session %d failed: %+v", tool, caller, res.Content)
		}
		return float64(time.Since(began).Microseconds()) / 1000, err
	}
}

// bearer returns an HTTP client that shows a token.
func bearer(token string) *http.Client {
	return &http.Client{Transport: authorized{token, &http.Transport{MaxIdleConnsPerHost: agents}}}
}

type authorized struct {
	token string
	next  http.RoundTripper
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.next.RoundTrip(r)
}

// several makes n calls by concurrent callers. It returns the duration of each,
// sorted, and the calls per second.
func several(ctx context.Context, callers, n int, call func(ctx context.Context, caller int) (float64, error)) (took []float64, rate float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took = make([]float64, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				ms, err := call(ctx, caller)
				if err != nil {
					cancel(err)
					return
				}
				took[i] = ms
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	rate = float64(n) / time.Since(began).Seconds()
	slices.Sort(took)
	return took, rate, nil
}

// quantile returns a percentile of sorted values.
func quantile(sorted []float64, percent int) float64 { return sorted[(len(sorted)-1)*percent/100] }

// quantilesMS are the median and the 99th percentile of sorted times, as a report
// has them.
func quantilesMS(sorted []float64) map[string]float64 {
	return map[string]float64{"p50_ms": quantile(sorted, 50), "p99_ms": quantile(sorted, 99)}
}
