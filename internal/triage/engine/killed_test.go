package engine_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	llm "github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// killedEnv makes the test binary run a triage process on the named database,
// and killedModels makes it ask the model server at an address.
const (
	killedEnv    = "COUNTERSIGN_TEST_TRIAGE"
	killedModels = "COUNTERSIGN_TEST_MODELS"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(killedEnv); database != "" {
		os.Exit(readUntilKilled(database))
	}
	os.Exit(m.Run())
}

func readUntilKilled(database string) int {
	go func() { // ends the process when the test has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ctx := context.Background()
	m, err := model()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: database, Name: "killed"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var models *asker.Models
	if address := os.Getenv(killedModels); address != "" {
		if models, err = asker.OpenModels(modelsAt(address), nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	e, err := engine.New(ctx, db, engine.Config{
		Models: models, Model: m, Look: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Open: func(_ context.Context, a account.Account) (mailbox.Reader, error) { return a.Open(account.Access{}) },
	})
	if err == nil {
		err = e.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// process starts a triage process, which the test must kill. ended is closed
// when it has ended.
func (f *fixture) process(environ ...string) (cmd *exec.Cmd, ended chan struct{}) {
	f.t.Helper()
	cmd = exec.CommandContext(f.t.Context(), os.Args[0])
	u, err := url.Parse(f.db.Config().ConnString())
	if err != nil {
		f.t.Fatal(err)
	}
	login := f.login.Config().ConnConfig
	u.User = url.UserPassword(login.User, login.Password)
	cmd.Env, cmd.Stderr = append(append(os.Environ(), killedEnv+"="+u.String()), environ...), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() { // ends with the process, whose input ends with the test
		_ = cmd.Wait()
		close(ended)
	}()
	f.t.Cleanup(func() {
		_ = stdin.Close()
		<-ended
	})
	return cmd, ended
}

// while waits until a query about the process returns false.
func (f *fixture) while(ended chan struct{}, sql string, args ...any) {
	f.t.Helper()
	for heard := f.heard(); one[bool](f, sql, args...); f.change(heard) {
		select {
		case <-ended:
			f.t.Fatal("the process ended by itself")
		default:
		}
	}
}

// TestKilledBackfillDecidesEachMessageOnce kills the process
// four times while it reads, and lets another one continue.
func TestKilledBackfillDecidesEachMessageOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const messages, sent = 400, 20
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen, received)
		SELECT tenant_id, account_id, 'news@garden-weekly.example', now(), now(), 7 FROM triage_accounts`)
	for i := range messages - sent {
		f.deliver("", newsletter(fmt.Sprintf("n%d@x", i)).raw())
	}
	for i := range sent {
		f.deliver("Sent", testMail{id: fmt.Sprintf("s%d@x", i), from: owner, to: "jan@firm.example", subject: "Fence", body: fmt.Sprint("Part ", i)}.raw())
	}

	for _, read := range []int{50, 120, 190, 260} {
		cmd, ended := f.process()
		f.while(ended, "SELECT count(1) < $1 FROM triage_messages", read)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("kill after %d messages: %v", read, err)
		}
		<-ended
		f.exec("UPDATE triage_schedules SET lease_until = now() - interval '1 second' WHERE holder IS NOT NULL")
	}
	f.once()

	for _, c := range []struct {
		what, query string
		want        int
	}{
		{"messages", "SELECT count(1) FROM triage_messages", messages},
		{"locations", "SELECT count(1) FROM triage_locations", messages},
		{"decisions", "SELECT count(1) FROM triage_decisions", messages - sent},
		{"runs, each of which found something", "SELECT least(count(1), 2) FROM triage_runs WHERE kind = 'backfill'", 2},
		{"rows that were not proposed", "SELECT count(1) FROM triage_proposals WHERE proposal_id IS NULL", 0},
		{"proposals beside the rows", "SELECT count(1) - (SELECT count(DISTINCT proposal_id) FROM triage_proposals) FROM proposals", 0},
		{"external ids proposed twice", "SELECT count(1) - count(DISTINCT body::jsonb ->> 'external_id') FROM proposals", 0},
		{"folders not read to their ends", "SELECT count(1) FROM triage_folders WHERE older_done_at IS NULL", 0},
	} {
		if n := one[int](f, c.query); n != c.want {
			t.Errorf("%d %s, want %d", n, c.what, c.want)
		}
	}
	if one[int](f, "SELECT count(1) FROM proposals") == 0 {
		t.Error("nothing was proposed")
	}
}

// modelsAt returns a configuration in which one server answers every tier,
// about two messages at a time.
func modelsAt(address string) llm.Config {
	c := llm.Config{Servers: map[string]llm.ServerConfig{"test": {URL: address}}, Tiers: map[string]llm.TierConfig{}}
	for _, tier := range llm.Tiers() {
		c.Tiers[tier] = llm.TierConfig{Server: "test", Model: "test-model", Pack: 2}
	}
	return c
}

// TestKilledProcessLosesOnlyItsQuestions kills a process whose
// questions are in flight, and one that has stored some answers.
func TestKilledProcessLosesOnlyItsQuestions(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	sixth, answers := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(release)
	fake := modeltest.New(t, modeltest.Config{Answer: func(r modeltest.Request) modeltest.Reply {
		if n := asked.Add(1); n > 5 {
			if n == 6 {
				close(sixth)
			}
			<-answers
		}
		return modeltest.First(r)
	}})
	f, models := asking(t, fake.Models())
	const messages = 60
	for i := range messages {
		f.deliver("", personal(fmt.Sprintf("l%d@x", i)).raw())
	}
	kill := func(while func(ended chan struct{})) {
		t.Helper()
		cmd, ended := f.process(killedModels + "=" + fake.URL())
		while(ended)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		f.exec("UPDATE triage_schedules SET lease_until = now() - interval '1 second' WHERE holder IS NOT NULL")
	}

	kill(func(ended chan struct{}) {
		f.while(ended, "SELECT count(1) < $1 FROM triage_decisions", messages)
		select {
		case <-sixth:
		case <-ended:
			t.Fatal("the process ended by itself")
		}
	})
	if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE tier <> 'embedded' OR NOT withheld"); n != 0 {
		t.Errorf("%d decisions rest on a model that has not answered, or are proposed without it", n)
	}
	release()
	kill(func(ended chan struct{}) {
		f.while(ended, "SELECT count(1) = 0 FROM triage_decisions WHERE tier <> 'embedded'")
	})
	f.onceWith(models)

	f.settled(messages)
	if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE tier = 'embedded'"); n != 0 {
		t.Errorf("about %d messages nothing was asked", n)
	}
}
