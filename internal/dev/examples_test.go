package dev_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// TestExamplesOfAgents runs the unchanged agents in examples against a new
// environment. Their output is the same in every language.
func TestExamplesOfAgents(t *testing.T) {
	t.Parallel()
	h := open(t, dbtest.URL(t), t.TempDir())
	agents := map[string][]string{"Go": {sourcetest.Program(t, "examples/agent-go")}}
	if python, err := exec.LookPath("python3"); err == nil {
		agents["Python"] = []string{python, "../../examples/agent-python/agent.py"}
	}
	if program := compileAgent(t); program != "" {
		agents["TypeScript"] = []string{"node", program}
	}
	for language, agent := range agents {
		title := "from " + language
		id := runAgent(t, h, agent, title, "waits for a person: ", 3)
		decide(t, h, id)
		if out := runAgent(t, h, agent, title, "done: ", 0); !strings.Contains(out, `"id"`) {
			t.Errorf("the agent in %s printed %q, want the answer of the tool", language, out)
		}
	}
	owner, err := h.Client(h.Tokens().Owner)
	if err == nil {
		err = owner.PutMode(t.Context(), wire.Mode{Tool: dev.NotesSource + ":notes.create", Mode: envelope.ModeDeny})
	}
	if err != nil {
		t.Fatal(err)
	}
	for language, agent := range agents {
		runAgent(t, h, agent, "denied, from "+language, "denied: ", 2)
	}
}

// runAgent runs an agent, and returns its output after want.
func runAgent(t *testing.T, h *dev.Environment, agent []string, title, want string, code int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), agent[0], append(agent[1:len(agent):len(agent)], title, "the text")...)
	cmd.Env = append(os.Environ(), "AGENT_WAIT=20s", "COUNTERSIGN_URL="+h.URL(), "COUNTERSIGN_TOKEN="+h.Tokens().Agent)
	if code == 3 {
		cmd.Env = append(cmd.Env, "AGENT_WAIT=100ms")
	}
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	got := cmd.ProcessState.ExitCode()
	rest, ok := strings.CutPrefix(string(raw), want)
	if !ok || got != code {
		t.Fatalf("%v printed %q and exited with %d, want %q and %d", agent, raw, got, want, code)
	}
	return strings.TrimSpace(rest)
}

// decide approves an action.
func decide(t *testing.T, h *dev.Environment, action string) {
	t.Helper()
	id, err := uuid.Parse(action)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := h.Client(h.Tokens().Operator)
	if err == nil {
		_, err = operator.Approve(t.Context(), envelope.ActionID(id), wire.Approval{}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compileAgent builds the agent in TypeScript, as its package.json does, and
// returns the program; empty where Node or its packages are not installed.
func compileAgent(t *testing.T) string {
	t.Helper()
	modules, err := filepath.Abs("../../schemas/testdata/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		return ""
	}
	if _, err := exec.LookPath("node"); err != nil {
		return ""
	}
	dir := t.TempDir()
	for _, name := range []string{"agent.ts", "package.json"} {
		text, err := os.ReadFile(filepath.Join("../../examples/agent-typescript", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"openapi-typescript", document, "-o", "api.d.ts"},
		{"tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "agent.ts"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", args[0]), args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(dir, "agent.js")
}

// TestExamplesProposeInTheirTransaction runs the examples of an order service
// against an environment, as their pages describe: each writes its own row and
// proposes, or does neither.
func TestExamplesProposeInTheirTransaction(t *testing.T) {
	t.Parallel()
	database := dbtest.URL(t)
	h := open(t, database, t.TempDir())
	shop := "shop_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	orders := newShop(t, database, shop)
	text, err := os.ReadFile("../../examples/orders-sql/order.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	program := sourcetest.Program(t, "examples/orders-go")
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+orders)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}

	if _, err := conn.Exec(t.Context(), string(text)); err != nil {
		t.Fatal(err)
	}
	out, err := run("4712", "bo@example.org")
	if err != nil || !strings.HasPrefix(out, "proposed: ") {
		t.Fatalf("it printed %q (%v)", out, err)
	}
	if out, err := run("4712", "bo@example.org"); err == nil || !strings.Contains(out, "23505") {
		t.Errorf("the same order again printed %q (%v), want that it is there already", out, err)
	}

	decide(t, h, waiting(t, h, "Order 4711"))
	decide(t, h, waiting(t, h, "Order 4712"))
}

// newShop makes a login with a table of orders, binds it to the tenant of the
// environment on a database, and returns its URL.
func newShop(t *testing.T, database, name string) string {
	t.Helper()
	ctx := t.Context()
	db, err := postgres.Open(ctx, postgres.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, statement := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD 'secret'", "CREATE SCHEMA AUTHORIZATION " + name,
		"CREATE TABLE " + name + ".orders (order_no text PRIMARY KEY, customer text NOT NULL)", "ALTER TABLE " + name + ".orders OWNER TO " + name,
	} {
		if _, err := db.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := db.Exec(context.WithoutCancel(ctx), "DROP OWNED BY "+name+"; DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	err = postgres.InTx(ctx, db, postgres.Admin(), func(tx pgx.Tx) error {
		tenant, err := identity.TenantByName(ctx, tx, dev.TenantName)
		if err == nil {
			_, err = identity.BindDBLogin(ctx, tx, tenant, identity.DBLogin{Login: name, Tools: []string{"notes:*"}, MaxWaiting: identity.DefaultMaxWaiting})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(name, "secret")
	return address.String()
}

// waiting returns the action that waits for a person to store a note.
func waiting(t *testing.T, h *dev.Environment, title string) (id string) {
	t.Helper()
	operator, err := h.Client(h.Tokens().Operator)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := context.Canceled
	_, err = operator.Follow(ctx, client.FromStart, client.Watcher{Event: func(wire.Event) error {
		page, err := operator.Inbox(ctx, client.InboxFilter{})
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if strings.Contains(string(item.Args), title) {
				id = item.ActionID.String()
				return found
			}
		}
		return nil
	}})
	if id == "" {
		t.Fatalf("no action with %q waits: %v", title, err)
	}
	return id
}
