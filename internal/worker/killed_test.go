package worker_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// killedEnv makes the test binary a worker on the database that it names.
const killedEnv = "COUNTERSIGN_TEST_WORKER"

// killedKeyEnv makes it connect to mailboxes, with credentials under the key that
// it holds.
const killedKeyEnv = "COUNTERSIGN_TEST_WORKER_KEY"

// killedName is the name of the worker and of its connections.
const killedName = "killed"

func TestMain(m *testing.M) {
	if url := os.Getenv(killedEnv); url != "" {
		os.Exit(workUntilKilled(url))
	}
	os.Exit(m.Run())
}

func workUntilKilled(url string) int {
	db, err := postgres.Open(context.Background(), postgres.Config{URL: url, Name: killedName})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	live := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		return sourcetest.NewSource(tools("as listed")...), nil
	}})
	if key := os.Getenv(killedKeyEnv); key != "" {
		if _, live, err = mailPool(key); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	go func() { // ends the process, when the test has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := worker.NewPipeline(db, settings.NewCache(), live, config(killedName)).Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// TestAWorkerThatIsKilledWhileItSettlesLeavesARecordThatVerifies kills the process
// of a worker while its statement that writes attempts waits for a lock.
func TestAWorkerThatIsKilledWhileItSettlesLeavesARecordThatVerifies(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	const each = 20
	for _, tool := range []string{toolRead, toolKeyed, toolOnce} {
		y.submit(tool, each)
	}
	lock, err := y.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := lock.Exec(t.Context(), "LOCK TABLE tool_executions IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), killedEnv+"="+y.url), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	y.soon(`SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE NOT l.granted AND a.application_name = $1 AND a.datname = current_database())`, killedName)

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	y.soon("SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.application_name = $1 AND a.datname = current_database())", killedName)
	y.exec("UPDATE outbox SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
	y.work()
	y.checkpoint()
	y.verified("", func(found []string, rows audit.RowsReport) {
		if len(found) > 0 || rows.Actions != 3*each || rows.Attempts < 3*each {
			t.Errorf("findings %q in %+v, want none, and %d actions that ended", found, rows, 3*each)
		}
	})
}

// soon polls until a query is true, for changes without a trigger.
func (y *fixture) soon(sql string, args ...any) {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), txTimeout)
	defer cancel()
	for !one[bool](y, sql, args...) {
		if ctx.Err() != nil {
			y.t.Fatalf("waited %v for: %s", txTimeout, sql)
		}
	}
}
