package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// asWorker has this test binary, started as a child, be the worker.
const asWorker = "WORKER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The limits that the processes share, and the amount of work.
const (
	rateLimit, rateBurst = 25, 4 // a second
	ceiling              = 3
	inRate, inCeiling    = 70, 60
	// latency is the duration of a call, so that calls overlap.
	latency = 20 * time.Millisecond
	// killAt is at which call a worker is killed.
	killAt = 25
)

// arrival is a call as the tool server sees it.
type arrival struct {
	bucket string
	n      int
	at     time.Time
}

// clock is an MCP server that records the calls of its tool, and the number of
// concurrent calls.
type clock struct {
	mu       sync.Mutex
	arrivals []arrival
	open     map[string]int
	most     map[string]int
	reached  chan struct{}
	// full is closed when the number of concurrent calls reaches the ceiling.
	// Until then no call is answered, even on a slow machine.
	full chan struct{}
}

func (c *clock) serve(t *testing.T) (url string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "touch", InputSchema: json.RawMessage(`{"type":"object"}`)}, c.touch)
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(server.Close)
	return server.URL
}

func (c *clock) touch(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Bucket string `json:"bucket"`
		N      int    `json:"n"`
	}
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.arrivals = append(c.arrivals, arrival{args.Bucket, args.N, time.Now()})
	c.open[args.Bucket]++
	before := c.most[args.Bucket]
	c.most[args.Bucket] = max(before, c.open[args.Bucket])
	if args.Bucket == "ceiling" && before < ceiling && c.open[args.Bucket] == ceiling {
		close(c.full)
	}
	if len(c.arrivals) == killAt {
		close(c.reached)
	}
	c.mu.Unlock()
	if args.Bucket == "ceiling" {
		select {
		case <-c.full:
		case <-ctx.Done():
		}
	}
	<-time.After(latency)
	c.mu.Lock()
	c.open[args.Bucket]--
	c.mu.Unlock()
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
}

// setUp makes a tenant with the clock as its source and the two buckets.
func setUp(t *testing.T, pool *pgxpool.Pool, url string) envelope.TenantID {
	t.Helper()
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	in := func(fn func(ctx context.Context, tx pgx.Tx) error) {
		t.Helper()
		if err := postgres.InTx(t.Context(), pool, postgres.Admin(), func(tx pgx.Tx) error { return fn(t.Context(), tx) }); err != nil {
			t.Fatal(err)
		}
	}
	in(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, 'processes')", tenant.String()); err != nil {
			return err
		}
		for _, b := range []limits.Bucket{
			{Name: "rate", Rate: &limits.Rate{Limit: rateLimit, Per: envelope.Duration(time.Second), Burst: rateBurst}},
			{Name: "ceiling", Concurrency: ceiling},
		} {
			if err := limits.PutBucket(ctx, tx, tenant, b, "test"); err != nil {
				return err
			}
		}
		if err := settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: "clock", Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	log := slog.New(slog.DiscardHandler)
	live := connection.NewPool(connection.Config{Networks: safehttp.Loopback()})
	t.Cleanup(live.Close)
	if err := connection.NewRefresher(pool, settings.NewCache(), live, log).Refresh(t.Context(), tenant, "clock"); err != nil {
		t.Fatal(err)
	}
	in(func(ctx context.Context, tx pgx.Tx) error {
		// The calls of a killed worker are repeated.
		return catalog.ConfigureTool(ctx, tx, tenant, policy.Key{Source: "clock", Action: "touch"}, catalog.Overrides{Effect: envelope.EffectIdempotent})
	})
	return tenant
}

// noteClaims stores the time of each claim, and notifies of every end.
func noteClaims(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE countersign_data.claims (action_id uuid NOT NULL, at timestamptz NOT NULL)",
		`CREATE FUNCTION countersign_data.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN INSERT INTO claims VALUES (NEW.action_id, now()); RETURN NULL; END $$`,
		"CREATE TRIGGER note AFTER UPDATE ON outbox FOR EACH ROW WHEN (NEW.fence > OLD.fence AND NEW.lease_until IS NOT NULL) EXECUTE FUNCTION note()",
		"CREATE FUNCTION countersign_data.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('changed', ''); RETURN NULL; END $$",
		"CREATE TRIGGER tell AFTER DELETE ON outbox FOR EACH STATEMENT EXECUTE FUNCTION tell()",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func submit(t *testing.T, pool *pgxpool.Pool, tenant envelope.TenantID) {
	t.Helper()
	var proposals []*envelope.Proposal
	for bucket, n := range map[string]int{"rate": inRate, "ceiling": inCeiling} {
		for i := range n {
			proposals = append(proposals, &envelope.Proposal{
				Type: envelope.TypeExec, ExternalID: bucket + "-" + strconv.Itoa(i), Tool: envelope.Tool{Name: "touch", Source: "clock"},
				Args: json.RawMessage(`{"bucket":"` + bucket + `","n":` + strconv.Itoa(i) + `}`), Constraints: envelope.Constraints{RateBucket: bucket},
			})
		}
	}
	answers, err := intake.New(pool, settings.NewCache(), intake.Config{}).Accept(t.Context(), intake.Submitter{Tenant: tenant, Name: "test"}, proposals)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}

// start starts a worker process; the end of the test ends it.
func start(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"=1", "DATABASE_URL="+url, "COUNTERSIGN_LEASE=5s",
		"COUNTERSIGN_DB_MAX_CONNS=5", "COUNTERSIGN_CONCURRENCY=20", "COUNTERSIGN_GRACE=5s", "COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// TestProcessesKeepTheLimitsTogether runs three worker processes that share a
// rate and a ceiling, one of which is killed meanwhile.
//
// The rate holds exactly for grants. Between its grant and its arrival at the
// tool a call takes up to d, which is measured; so within any time w no more
// arrive than were granted within w + d.
func TestProcessesKeepTheLimitsTogether(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := &clock{open: make(map[string]int), most: make(map[string]int), reached: make(chan struct{}), full: make(chan struct{})}
	tenant := setUp(t, pool, c.serve(t))
	noteClaims(t, pool)
	listener, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(context.WithoutCancel(t.Context())) })
	if _, err := listener.Exec(t.Context(), "LISTEN changed"); err != nil {
		t.Fatal(err)
	}
	workers := []*exec.Cmd{start(t, url), start(t, url), start(t, url)}

	submit(t, pool, tenant)
	patience, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	select {
	case <-c.reached:
	case <-patience.Done():
		t.Fatal("the workers do not work")
	}
	if err := workers[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for left := true; left; {
		if err := pool.QueryRow(patience, "SELECT EXISTS (SELECT FROM outbox)").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if !left {
			break
		}
		if _, err := listener.WaitForNotification(patience); err != nil {
			t.Fatal("the workers do not end")
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.most["ceiling"]; got != ceiling {
		t.Errorf("%d calls were under way at once, want %d", got, ceiling)
	}
	c.checkRate(t, pool)
	c.checkAll(t)
}

// checkRate checks every interval between two arrivals.
func (c *clock) checkRate(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	began := make(map[string][]time.Time)
	rows, err := pool.Query(t.Context(), "SELECT a.external_id, c.at FROM claims c JOIN actions a USING (action_id) ORDER BY c.at")
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&name, &at}, func() error {
		began[name] = append(began[name], at)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var onTheWay time.Duration
	var times []time.Time
	for _, a := range c.arrivals {
		if a.bucket != "rate" {
			continue
		}
		times = append(times, a.at)
		claims := began["rate-"+strconv.Itoa(a.n)]
		last, ok := slices.BinarySearchFunc(claims, a.at, time.Time.Compare)
		if !ok {
			last-- // the last claim before it
		}
		if last < 0 {
			t.Fatalf("envelope %d was called before it was claimed", a.n)
		}
		onTheWay = max(onTheWay, a.at.Sub(claims[last]))
	}
	const every = time.Second / rateLimit
	for i := range times {
		for j := i; j < len(times); j++ {
			length := times[j].Sub(times[i])
			if n, most := j-i+1, rateBurst+int((length+onTheWay)/every); n > most {
				t.Fatalf("%d calls arrived within %v, want at most %d; up to %v passed from a claim to its call", n, length, most, onTheWay)
			}
		}
	}
	t.Logf("%d calls in %v, up to %v from a claim to its call", len(times), times[len(times)-1].Sub(times[0]), onTheWay)
}

// checkAll checks that nothing was lost.
func (c *clock) checkAll(t *testing.T) {
	t.Helper()
	called := make(map[arrival]bool)
	for _, a := range c.arrivals {
		called[arrival{bucket: a.bucket, n: a.n}] = true
	}
	if len(called) != inRate+inCeiling {
		t.Errorf("%d envelopes were called, want %d", len(called), inRate+inCeiling)
	}
}
