package contract_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// npm holds the generator and the client of TypeScript programs.
const npm = "../../../schemas/testdata/npm/node_modules"

// fixture is a running API with a worker and a tenant. Its source "mail" has a
// tool for each decision: policy allows read, requires approval for send_email
// and denies delete_all.
type fixture struct {
	t                    *testing.T
	db                   *pgxpool.Pool
	tenant               envelope.TenantID
	url, agent, operator string
}

func mailTools() []source.Tool {
	return []source.Tool{
		{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{ReadOnly: true}},
		{Name: "send_email", InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"}}}`)},
		{Name: "delete_all", InputSchema: json.RawMessage(`{"type":"object"}`), Hints: source.Hints{Destructive: new(true)}},
	}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DB(t)}
	log := slog.New(slog.DiscardHandler)
	mail := sourcetest.NewSource(mailTools()...)
	live := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) { return mail, nil }})
	metrics, err := telemetry.NewMetrics(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	cache := settings.NewCache()
	pipeline := worker.NewPipeline(f.db, cache, live, worker.PipelineConfig{
		ID: "w1", Concurrency: 4, Lease: time.Minute, Poll: 20 * time.Millisecond, Grace: time.Minute,
		Retry: outbox.Retry{Base: time.Millisecond, Cap: 2 * time.Millisecond}, Metrics: metrics,
	})
	server, err := rest.New(rest.Core{
		DB: f.db, Catalog: cache, Intake: intake.New(f.db, cache, intake.Config{Wake: pipeline.Poll}),
		Approval: approval.New(f.db, cache, approval.Config{Wake: pipeline.Poll}),
	}, rest.Config{Log: log, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Run(ctx) }() // waited for by the clean-up
	t.Cleanup(func() {
		server.Close()
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		live.Close()
	})
	f.url = web.URL
	f.seed()
	return f
}

// seed makes the tenant, its source and its tokens.
func (f *fixture) seed() {
	f.t.Helper()
	ctx := f.t.Context()
	err := postgres.InTx(ctx, f.db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		f.tenant, err = identity.NewTenant(ctx, tx, "acme")
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	err = postgres.InTx(ctx, f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "mail", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, f.tenant, "mail", mailTools()); err != nil {
			return err
		}
		agent, err := identity.Issue(ctx, tx, f.tenant, identity.Grant{Name: "agent", Role: identity.RoleAgent}, time.Now())
		if err != nil {
			return err
		}
		operator, err := identity.Issue(ctx, tx, f.tenant, identity.Grant{Name: "olga", Role: identity.RoleOperator}, time.Now())
		f.agent, f.operator = agent.Token.Text(), operator.Token.Text()
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// program prepares a command that finds the API and its tokens in its
// environment.
func (f *fixture) program(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "COUNTERSIGN_URL="+f.url, "COUNTERSIGN_TOKEN="+f.agent, "OPERATOR_TOKEN="+f.operator)
	return cmd
}

// run runs a command to its end and returns its output.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// requireProgram returns the path of a program, or skips the test.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	return path
}

// requireNPM returns the path of npm's packages, or skips the test.
func requireNPM(t *testing.T) string {
	t.Helper()
	requireProgram(t, "node")
	modules, err := filepath.Abs(npm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		t.Skip("schemas/testdata/npm/node_modules is missing: run make npm")
	}
	return modules
}
