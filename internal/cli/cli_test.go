package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// fixture is a command line beside a running environment.
type fixture struct {
	t                  *testing.T
	environment        *dev.Environment
	url, database, dir string
}

// result is the exit code and the output of a command.
type result struct {
	code     int
	out, err string
}

// run runs a command with a token.
func (d *fixture) run(ctx context.Context, token, in string, args ...string) result {
	d.t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{"COUNTERSIGN_URL": d.url, "COUNTERSIGN_TOKEN": token, "DATABASE_URL": d.database}
	code := cli.Run(ctx, args, command.System{
		In: strings.NewReader(in), Out: &out, Err: &errs, Getenv: func(name string) string { return env[name] },
	})
	if token != "" && strings.Contains(out.String()+errs.String(), token) {
		d.t.Errorf("%q shows its token", args)
	}
	return result{code, out.String(), errs.String()}
}

func (d *fixture) agent(args ...string) result {
	d.t.Helper()
	return d.run(d.t.Context(), d.environment.Tokens().Agent, "", args...)
}

func (d *fixture) operator(args ...string) result {
	d.t.Helper()
	return d.run(d.t.Context(), d.environment.Tokens().Operator, "", args...)
}

// want fails the test unless a command ended with a code and printed texts.
func (d *fixture) want(s result, code int, texts ...string) result {
	d.t.Helper()
	if s.code != code {
		d.t.Fatalf("exit code %d, want %d\n%s%s", s.code, code, s.out, s.err)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.err, text) {
			d.t.Errorf("it does not say %q:\n%s%s", text, s.out, s.err)
		}
	}
	return s
}

// decode reads a document.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// propose has the agent ask for a note, which needs a person, and returns its
// id.
func (d *fixture) propose(title string) string {
	d.t.Helper()
	s := d.want(d.agent("submit", "--json", "--tool", "notes:notes.create", "--args", `{"title":"`+title+`","body":"x"}`), command.ExitOK)
	return decode[wire.Action](d.t, s.out).Envelope.ActionID.String()
}

// notes returns the program of the example server, which an environment would build
// again.
func notes(t *testing.T) string {
	t.Helper()
	return sourcetest.Program(t, "examples/notes-mcp")
}

func open(t *testing.T) *fixture {
	t.Helper()
	database := dbtest.URL(t)
	h, err := dev.Open(t.Context(), dev.Config{DatabaseURL: database, Listen: "127.0.0.1:0", Notes: notes(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	// The tests all run in the session of one agent, by far faster than
	// an agent may go.
	admin, err := h.Client(h.Tokens().Admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.PutSettings(t.Context(), wire.Settings{Timezone: "UTC", SessionPending: new(0), SessionMinute: new(0)}); err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, environment: h, url: h.URL(), database: database, dir: t.TempDir()}
}

// TestCommands goes through every command against a real API with a worker
// behind it. The tests share one environment.
func TestCommands(t *testing.T) {
	t.Parallel()
	shared := open(t)
	admin, err := shared.environment.Client(shared.environment.Tokens().Admin)
	if err != nil {
		t.Fatal(err)
	}
	// What cannot be read fails at once, for the dead letters.
	if err := admin.OverrideTool(t.Context(), "notes"+":"+"notes.read", wire.Overrides{MaxAttempts: 1}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*fixture){
		"submits and waits":                     submitsAndWaits,
		"the same again is the same":            submitsAgain,
		"policy denies":                         policyDenies,
		"submits many":                          submitsMany,
		"refuses before it sends":               refusesBeforeSending,
		"decides":                               decides,
		"undoes":                                undoes,
		"lists":                                 lists,
		"watches":                               watches,
		"looks after dead letters":              deadLetters,
		"looks into executions":                 looksIntoExecutions,
		"proposes in SQL":                       proposesInSQL,
		"binds logins of the database":          bindsDBLogins,
		"says what to do about an error":        advises,
		"sets a database up":                    setsUp,
		"sets tokens up":                        setsTokensUp,
		"logs in":                               logsIn,
		"runs the development environment once": runsDev,
		"knows itself":                          knowsItself,
		"suggests flags":                        suggestsFlags,
		"completes words":                       completesWords,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := *shared
			d.t, d.dir = t, t.TempDir()
			test(&d)
		})
	}
}

func submitsAndWaits(d *fixture) {
	d.want(d.agent("submit", "--tool", "notes.list", "--source", "notes", "--wait"), command.ExitOK, "notes:notes.list", "completed", "sent")
	s := d.want(d.agent("submit", "--tool", "notes:notes.list", "--external-id", "wait-json", "--wait=20s", "--json"), command.ExitOK)
	a := decode[wire.Action](d.t, s.out)
	if a.Phase != "completed" || a.Envelope.ExternalID != "wait-json" || strings.Count(s.out, "\n") != 1 {
		d.t.Errorf("--json wrote %s", s.out)
	}
	d.want(d.agent("get", a.Envelope.ActionID.String()), command.ExitOK, "wait-json", "the default for the tool's risk: risk read", "LEFT IT")
	got := decode[wire.Action](d.t, d.want(d.agent("get", "--json", "--wait", a.Envelope.ActionID.String()), command.ExitOK).out)
	if got.Envelope.ActionID != a.Envelope.ActionID {
		d.t.Errorf("get shows %s", got.Envelope.ActionID)
	}
	d.want(d.agent("submit", "--tool", "notes:notes.list", "--not-before", "1h"), command.ExitOK, "approved", "get")
	d.want(d.agent("submit", "--tool", "notes:notes.list", "--automation", "nightly", "--external-id", "nightly-1"), command.ExitFailed, "/automation_id: the token may not name")
	file := filepath.Join(d.dir, "args.json")
	if err := os.WriteFile(file, []byte(`{"title":"From a file","body":"x"}`), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.want(d.agent("submit", "--tool", "notes:notes.create", "--args", "@"+file), command.ExitOK, "A person must decide: countersign approve")
}

func submitsAgain(d *fixture) {
	args := []string{"submit", "--tool", "notes:notes.list", "--external-id", "again", "--json"}
	first := decode[wire.Action](d.t, d.want(d.agent(args...), command.ExitOK).out)
	again := decode[wire.Action](d.t, d.want(d.agent(args...), command.ExitOK).out)
	if first.Envelope.ActionID != again.Envelope.ActionID {
		d.t.Error("the second answer is another action")
	}
	d.want(d.agent(args[:5]...), command.ExitOK, "Already proposed")
	d.want(d.agent("submit", "--tool", "notes:notes.create", "--args", `{"title":"x","body":"x"}`, "--external-id", "again"),
		command.ExitFailed, "exists with other content")
}

func policyDenies(d *fixture) {
	s := d.want(d.agent("submit", "--tool", "notes:notes.delete", "--args", `{"id":"x"}`), command.ExitAction, "denied", "risk danger")
	if strings.Contains(s.err, "--help") {
		d.t.Errorf("a denial is no wrong usage: %s", s.err)
	}
	a := decode[wire.Action](d.t, d.want(d.agent("submit", "--json", "--tool", "notes:notes.delete", "--args", `{"id":"x"}`), command.ExitAction).out)
	d.want(d.agent("get", a.Envelope.ActionID.String()), command.ExitAction, "deny: the default for the tool's risk: risk danger")
}

func submitsMany(d *fixture) {
	token := d.environment.Tokens().Agent
	proposal := func(name, tool string) string {
		return `{"type":"mcp.exec","external_id":"` + name + `","tool":{"source":"notes","name":"` + tool + `"},"args":{}}`
	}
	lines := proposal("many-1", "notes.list") + "\n" + proposal("many-2", "notes.list")
	d.want(d.run(d.t.Context(), token, lines, "submit", "-"), command.ExitOK, "2 accepted, 0 already known")
	d.want(d.run(d.t.Context(), token, "["+strings.ReplaceAll(lines, "\n", ",")+"]", "submit", "-", "--wait=20s"), command.ExitOK, "many-1", "many-2", "completed")
	mixed := lines + proposal("many-3", "notes.lost")
	s := d.want(d.run(d.t.Context(), token, mixed, "submit", "-"), command.ExitFailed, "1 refused", `tool/name no such tool "notes:notes.lost"; did you mean "notes:notes.list"?`, "safe")
	if strings.Contains(s.out, "/items/") {
		d.t.Errorf("it speaks of lots: %s", s.out)
	}
	s = d.want(d.run(d.t.Context(), token, mixed, "submit", "-", "--json"), command.ExitFailed)
	if got := strings.Count(s.out, "\n"); got != 3 {
		d.t.Errorf("%d lines, want 3:\n%s", got, s.out)
	}
	file := filepath.Join(d.dir, "one.json")
	if err := os.WriteFile(file, []byte(proposal("many-4", "notes.list")), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.want(d.agent("submit", file), command.ExitOK, "many-4")

	var big strings.Builder
	const n = 1001
	for i := range n {
		big.WriteString(strings.Replace(proposal("big-"+strconv.Itoa(i), "notes.list"), `"args"`, `"constraints":{"not_before":"2100-01-01T00:00:00Z"},"args"`, 1))
	}
	d.want(d.run(d.t.Context(), token, big.String(), "submit", "-"), command.ExitOK, "1001 accepted", "submitted 1000 of 1001", "submitted 1001 of 1001")
}

func refusesBeforeSending(d *fixture) {
	for _, args := range [][]string{
		{"submit"}, {"submit", "a", "b"}, {"submit", "no-such-file"}, {"submit", "-", "--tool", "x"}, {"submit", "--tool", "x", "--args", "{"},
		{"submit", "--tool", "x", "--wait=1h"}, {"get"}, {"get", "x"}, {"list", "x"}, {"list", "--status", "x"}, {"list", "--limit", "0"},
		{"list", "--approval", "x"}, {"approve"}, {"deny", "x"}, {"undo"}, {"watch", "x"}, {"dlq", "x"}, {"dlq", "list", "--reason", "x"},
		{"dlq", "replay"}, {"dlq", "replay", "--all", "--tool", "x"}, {"dlq", "discard", "--all"}, {"dlq", "show"}, {"token", "create"},
		{"token", "revoke", "cs_agent_hunter2"}, {"tenant"}, {"tenant", "create"}, {"x"}, {"--x"}, {"dev", "--once", "--data-dir", "x"},
		{"list", "--url", "nowhere"},
	} {
		if len(args) == 1 && args[0] == "tenant" {
			d.want(d.agent(args...), command.ExitOK, "Usage:")
			continue
		}
		s := d.want(d.agent(args...), command.ExitUsage, "countersign: ", "--help")
		if strings.Contains(s.err, "hunter2") || s.out != "" {
			d.t.Errorf("%q says %s%s", args, s.out, s.err)
		}
	}
}

func decides(d *fixture) {
	good, bad := d.propose("Approved"), d.propose("Denied")
	d.want(d.agent("approve", good), command.ExitFailed, "role agent", "it needs the role")
	d.want(d.operator("approve", good, "--wait", "--note", "fine"), command.ExitOK, "completed")
	d.want(d.operator("approve", good), command.ExitFailed, "does not wait for a decision: it was approved by demo operator")
	d.want(d.operator("deny", bad, "--note", "no, thank you"), command.ExitOK, "denied", "no, thank you")
	d.want(d.agent("get", bad), command.ExitAction, "denied by demo operator", "no, thank you")
	one, two := d.propose("One"), d.propose("Two")
	d.want(d.operator("approve", one, bad, two, "--wait"), command.ExitFailed, one, two, bad+":")
}

func undoes(d *fixture) {
	id := d.propose("Undone")
	d.want(d.agent("undo", id), command.ExitOK, "skipped", "undone")
	const outcome = ": it was undone by demo agent ("
	d.want(d.agent("undo", id), command.ExitFailed, "action "+id+" is already undone"+outcome)
	waiting := d.propose("Undone while it waits")
	d.want(d.agent("undo", waiting), command.ExitOK, "undone")
	d.want(d.operator("approve", waiting), command.ExitFailed, "action "+waiting+" does not wait for a decision"+outcome)
	d.want(d.operator("deny", waiting), command.ExitFailed, "action "+waiting+" does not wait for a decision"+outcome)
	d.want(d.agent("undo", waiting), command.ExitFailed, "action "+waiting+" is already undone"+outcome)
	d.want(d.agent("list", "--phase", "undone"), command.ExitOK, waiting)
}

func lists(d *fixture) {
	d.propose("Listed first")
	d.propose("Listed second")
	id := d.propose("Listed")
	d.want(d.operator("list", "--approval", "required", "--tool", "notes.create", "--source", "notes"), command.ExitOK, id)
	page := decode[wire.Page[wire.Action]](d.t, d.want(d.agent("list", "--json", "--limit", "1"), command.ExitOK).out)
	if len(page.Items) != 1 || page.NextCursor == nil {
		d.t.Fatalf("a page of one is %+v", page)
	}
	d.want(d.agent("list", "--limit", "1", "--cursor", *page.NextCursor), command.ExitOK, "ID", "--cursor")
	d.want(d.agent("list", "--external-id", "there-is-none"), command.ExitOK, "No matching actions.")
}

// ender ends a context when something was written.
type ender struct {
	bytes.Buffer
	text string
	end  context.CancelFunc
}

func (w *ender) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.end()
	}
	return n, err
}

func watches(d *fixture) {
	id := d.propose("Watched")
	for _, args := range [][]string{{"watch", "--since", "start"}, {"watch", "--since", "start", "--json"}} {
		ctx, cancel := context.WithCancel(d.t.Context())
		out, errs := &ender{text: id, end: cancel}, &bytes.Buffer{}
		env := map[string]string{"COUNTERSIGN_URL": d.url, "COUNTERSIGN_TOKEN": d.environment.Tokens().Operator}
		code := cli.Run(ctx, args, command.System{Out: out, Err: errs, Getenv: func(name string) string { return env[name] }})
		cancel()
		if code != command.ExitOK || !strings.Contains(out.String(), "proposed") {
			d.t.Errorf("%q = %d:\n%s%s", args, code, out, errs)
		}
		if len(args) == 4 {
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if e := decode[wire.Event](d.t, lines[0]); e.ID == "" || errs.Len() > 0 {
				d.t.Errorf("first event is %+v; %s", e, errs)
			}
		} else if !strings.Contains(errs.String(), "--since ") {
			d.t.Errorf("it does not say how to go on: %s", errs)
		}
	}
	d.want(d.agent("watch", "--since", "never"), command.ExitUsage, "Last-Event-ID")
}

func deadLetters(d *fixture) {
	fail := func(name string) string {
		s := d.want(d.agent("submit", "--tool", "notes:notes.read", "--args", `{"id":"nothere"}`, "--external-id", name, "--wait", "--json"), command.ExitAction)
		return decode[wire.Action](d.t, s.out).Envelope.ActionID.String()
	}
	one, two := fail("dead-1"), fail("dead-2")
	d.want(d.agent("dlq", "list"), command.ExitFailed, "it needs the role")
	d.want(d.operator("dlq", "list", "--reason", "refused", "--tool", "notes.read"), command.ExitOK, one, two)
	d.want(d.operator("dlq", "list", "--tool", "no.such"), command.ExitOK, "No matching dead letters")
	page := decode[wire.Page[wire.DeadLetter]](d.t, d.want(d.operator("dlq", "list", "--limit", "1", "--json"), command.ExitOK).out)
	if len(page.Items) != 1 || page.NextCursor == nil {
		d.t.Errorf("a page of one is %+v", page)
	}
	d.want(d.operator("dlq", "list", "--all", "--json"), command.ExitOK, one, two)
	d.want(d.operator("dlq", "show", one), command.ExitOK, "no such note", "dlq replay "+one+" --apply")
	d.want(d.operator("dlq", "show", one, "--json"), command.ExitOK, `"dead_letter":{`)

	d.want(d.operator("dlq", "replay", "--reason", "refused"), command.ExitOK, "notes:notes.read", "Nothing was changed. To replay these 2, add --apply.")
	d.want(d.operator("dlq", "discard", one, "--note", "x"), command.ExitOK, "Nothing was changed.")
	dry := decode[struct {
		Applied bool
		Count   int
	}](d.t, d.want(d.operator("dlq", "replay", "--all", "--json"), command.ExitOK).out)
	if dry.Applied || dry.Count != 2 {
		d.t.Errorf("a dry run came to %+v", dry)
	}
	d.want(d.operator("dlq", "replay", one, "--apply"), command.ExitOK, "1 replayed")
	d.want(d.operator("get", one, "--wait"), command.ExitAction, "failed")
	d.want(d.operator("dlq", "discard", "--tool", "notes.read", "--note", "of no use", "--apply"), command.ExitOK, "2 discarded")
	d.want(d.operator("dlq", "replay", "--all", "--apply"), command.ExitOK, "No matching dead letters")
	d.want(d.operator("dlq", "show", one), command.ExitFailed, "no dead letter")
}

func advises(d *fixture) {
	d.want(d.run(d.t.Context(), "", "", "list"), command.ExitFailed, "COUNTERSIGN_TOKEN", "countersign dev")
	d.want(d.agent("list", "--url", "http://127.0.0.1:1"), command.ExitFailed, "no answer from", "Is the API running there?")
	s := d.want(d.run(d.t.Context(), "cs_agent_wrong", "", "list", "--json"), command.ExitFailed)
	doc := decode[struct {
		Error   string
		Problem client.Problem
	}](d.t, s.err)
	if doc.Problem.Status != 401 || doc.Error == "" {
		d.t.Errorf("--json wrote %s", s.err)
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	cancel()
	d.want(d.run(ctx, d.environment.Tokens().Agent, "", "list"), command.ExitInterrupted, "stopped")
}

func setsUp(d *fixture) {
	d.want(d.agent("migrate"), command.ExitOK, "already")
	empty := *d
	empty.database = dbtest.EmptyURL(d.t)
	d.want(empty.agent("migrate"), command.ExitOK, "from version 0")
	empty.database = ""
	d.want(empty.agent("migrate"), command.ExitUsage, "DATABASE_URL")
	empty.database = "postgres://u:hunter2@127.0.0.1:1/x"
	if s := d.want(empty.agent("tenant", "create", "x"), command.ExitFailed, "does not answer"); strings.Contains(s.err, "hunter2") {
		d.t.Errorf("the password shows: %s", s.err)
	}

	d.want(d.agent("token", "create", "--tenant", "acme", "--role", "agent", "--name", "x"), command.ExitFailed, "tenant create")
	d.want(d.agent("tenant", "create", "acme"), command.ExitOK)
	d.want(d.agent("tenant", "create", "acme"), command.ExitFailed)
	d.want(d.agent("token", "create", "--tenant", "acme", "--role", "king", "--name", "x"), command.ExitUsage, "--role")
	plain := d.want(d.agent("token", "create", "--tenant", "acme", "--role", "operator", "--name", "Ana", "--expires-in", "1h"), command.ExitOK, "shown only once")
	d.want(d.run(d.t.Context(), strings.TrimSpace(plain.out), "", "list"), command.ExitOK, "No matching actions.")
	made := decode[struct {
		TokenID string `json:"token_id"`
		Token   string
	}](d.t, d.want(d.agent("token", "create", "--tenant", "acme", "--role", "agent", "--name", "x", "--json"), command.ExitOK).out)
	d.want(d.agent("token", "revoke", made.TokenID), command.ExitFailed, "a token of the role agent may not do this; it needs the role admin or owner")
	d.want(d.agent("token", "revoke", made.TokenID, "--tenant", "acme"), command.ExitOK, "revoked")
	d.want(d.agent("token", "revoke", made.TokenID, "--tenant", "acme"), command.ExitFailed, "no token")
	d.want(d.run(d.t.Context(), made.Token, "", "list"), command.ExitFailed, "not valid")
}

func runsDev(d *fixture) {
	d.database = dbtest.URL(d.t)
	s := d.want(d.agent("dev", "--once", "--notes", notes(d.t)), command.ExitOK, "postgres", "All 8 actions and 5 mails ended as expected.")
	if strings.Contains(s.out, "cs_") {
		d.t.Errorf("tokens that are good for nothing show:\n%s", s.out)
	}
	doc := decode[dev.Report](d.t, d.want(d.agent("dev", "--once", "--json", "--notes", notes(d.t)), command.ExitOK).out)
	if !doc.OK || len(doc.Steps) != 8 {
		d.t.Errorf("--json wrote %+v", doc)
	}

	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	out, errs := &ender{text: "approve ID", end: cancel}, &bytes.Buffer{}
	env := map[string]string{"DATABASE_URL": d.database}
	code := cli.Run(ctx, []string{"dev", "--data-dir", d.dir, "--listen", "127.0.0.1:0", "--notes", notes(d.t)},
		command.System{Out: out, Err: errs, Program: "bin/countersign", Getenv: func(name string) string { return env[name] }})
	if code != command.ExitOK || !strings.Contains(out.String(), "bin/countersign submit --tool") || !strings.Contains(out.String(), " OPERATOR_TOKEN=cs_operator_") || strings.Contains(out.String(), "export DATABASE_URL") || !strings.Contains(errs.String(), "Stopping") {
		d.t.Errorf("dev = %d:\n%s%s", code, out, errs)
	}
	s = d.want(d.agent("dev", "--once", "--notes", "/bin/true"), command.ExitFailed, "failed", "The log is in")
	_, log, _ := strings.Cut(s.err, "The log is in ")
	log, _, _ = strings.Cut(log, "\n")
	if err := os.Remove(log); err != nil {
		d.t.Errorf("the log is not there: %v", err)
	}
}

func suggestsFlags(d *fixture) {
	for flag, want := range map[string]string{
		"--lmit":              `did you mean "--limit"?`,
		"--automaton=hunter2": `did you mean "--automation"?`,
		"--tokne=hunter2":     `did you mean "--token"?`,
		"-token":              `did you mean "--token"?`,
		"--payroll":           "unknown flag: --payroll\n",
	} {
		if s := d.want(d.agent("list", flag), command.ExitUsage, want); strings.Contains(s.err, "hunter2") {
			d.t.Errorf("the value shows: %s", s.err)
		}
	}
}

// The lines to paste open the private database.
func TestDevPrintsItsDatabase(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir, err := os.MkdirTemp("", "countersign-dev-test-") // t.TempDir() is closed to the account of a private server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var actions int
	var errs bytes.Buffer
	out := &ender{text: "approve ID", end: cancel}
	out.end = func() {
		defer cancel()
		var exports []string
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "  export ") {
				exports = append(exports, line)
			}
		}
		url, err := exec.CommandContext(ctx, "sh", "-c", strings.Join(exports, "")+`printf %s "$DATABASE_URL"`).Output()
		if err != nil {
			t.Errorf("%v from %q", err, exports)
			return
		}
		conn, err := pgx.Connect(ctx, string(url))
		if err != nil {
			t.Errorf("connect to %s: %v", url, err)
			return
		}
		defer func() { _ = conn.Close(ctx) }()
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM countersign_data.actions").Scan(&actions); err != nil {
			t.Error(err)
		}
	}
	code := cli.Run(ctx, []string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--notes", notes(t)},
		command.System{Out: out, Err: &errs, Getenv: func(string) string { return "" }})
	if code != command.ExitOK || actions == 0 {
		t.Errorf("dev = %d with %d actions in its database:\n%s%s", code, actions, out, &errs)
	}
}

func knowsItself(d *fixture) {
	for _, version := range []string{"version", "--version"} {
		d.want(d.agent(version), command.ExitOK, "countersign "+telemetry.Version())
		d.want(d.agent(version, "--json"), command.ExitOK, `"go":"go1.`)
	}
	d.want(d.agent("--version", "lst"), command.ExitUsage, `did you mean "list"?`)
	d.want(d.agent(), command.ExitOK, "Start here:")
	d.want(d.agent("completion", "bash"), command.ExitOK, "__start_countersign")
}
