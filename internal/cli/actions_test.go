package cli_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// promptWatcher hears what a command says, and does something once when it waits for
// approval: then asked is called with the action's id.
type promptWatcher struct {
	mu    sync.Mutex
	text  bytes.Buffer
	asked func(id string)
}

func (e *promptWatcher) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text.Write(p)
	if found := regexp.MustCompile(`waiting for approval of ([0-9a-f-]{36})`).FindSubmatch(e.text.Bytes()); found != nil && e.asked != nil {
		asked := e.asked
		e.asked = nil
		asked(string(found[1]))
	}
	return len(p), nil
}

// attend runs a command as the agent, and does something when it waits.
func (d *fixture) attend(ctx context.Context, asked func(id string), args ...string) result {
	d.t.Helper()
	var out bytes.Buffer
	errs := &promptWatcher{asked: asked}
	env := map[string]string{"COUNTERSIGN_URL": d.url, "COUNTERSIGN_TOKEN": d.environment.Tokens().Agent}
	code := cli.Run(ctx, args, command.System{
		In: strings.NewReader(""), Out: &out, Err: errs, Getenv: func(name string) string { return env[name] },
	})
	return result{code, out.String(), errs.text.String()}
}

func TestActions(t *testing.T) {
	t.Parallel()
	shared := open(t)
	for name, test := range map[string]func(*fixture){
		"lists what may be used":         listsActions,
		"guides":                         guides,
		"runs what is allowed":           runsAllowed,
		"waits for a person":             waitsForAPerson,
		"is denied":                      isDenied,
		"is stopped":                     isStopped,
		"asks first":                     asksFirst,
		"refuses before anything runs":   refusesToRun,
		"does not wait if not asked to":  doesNotWait,
		"says when to try again":         saysWhen,
		"keeps notes":                    keepsNotes,
		"is denied by a person":          isDeniedByAPerson,
		"the same again is not run anew": runsAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := *shared
			d.t, d.dir = t, t.TempDir()
			test(&d)
		})
	}
}

func listsActions(d *fixture) {
	s := d.want(d.agent("actions", "list"), command.ExitOK, "notes:notes.create", "waits for a person", "notes:notes.list", "runs at once")
	if strings.Contains(s.out, "notes:notes.delete") {
		d.t.Errorf("it lists what is denied:\n%s", s.out)
	}
	if strings.Contains(d.want(d.operator("actions", "list"), command.ExitOK, "notes:notes.create").out, "notes:notes.delete") {
		d.t.Error("it lists what is denied to a person")
	}
	found := d.want(d.agent("actions", "list", "--search", "notes.create", "--json"), command.ExitOK)
	first, _, _ := strings.Cut(found.out, "\n")
	if tool := decode[wire.Tool](d.t, first); tool.Tool != "notes:notes.create" || len(tool.InputSchema) == 0 {
		d.t.Errorf("the first that is found is %s", first)
	}
	d.want(d.agent("actions", "list", "--search", "zeppelin"), command.ExitOK, "No matching tools are available to you.")
}

func guides(d *fixture) {
	d.want(d.agent("actions", "guide"), command.ExitOK, "# Acting through Countersign", "- TOOL: `notes:notes.create`")
	d.want(d.agent("actions", "guide", "--search", "zeppelin"), command.ExitOK, "No tool that you may use matches")
	s := d.want(d.agent("actions", "guide", "--json"), command.ExitOK)
	if got := decode[map[string]string](d.t, s.out)["guide"]; !strings.HasPrefix(got, "# Acting") {
		d.t.Errorf("guide --json is %s", s.out)
	}
}

func runsAllowed(d *fixture) {
	d.want(d.agent("actions", "run", "notes:notes.list"), command.ExitOK)
	d.want(d.agent("actions", "run", "notes:notes.list", "--automation", "nightly"), command.ExitFailed, "/automation_id: the token may not name")
	inv := decode[wire.Invocation](d.t, d.want(d.agent("actions", "run", "notes:notes.list", "--json"), command.ExitOK).out)
	if inv.Status != "success" || inv.Tool != "notes:notes.list" || len(inv.Outputs) == 0 {
		d.t.Errorf("run --json is %+v", inv)
	}
}

func waitsForAPerson(d *fixture) {
	var decided result
	s := d.attend(d.t.Context(), func(id string) { decided = d.operator("approve", id) },
		"actions", "run", "notes:notes.create", "title=Awaited", "body=x")

	d.want(decided, command.ExitOK)
	if d.want(s, command.ExitOK, "waiting for approval"); !strings.Contains(s.out, "Awaited") && !strings.Contains(s.out, "id") {
		d.t.Errorf("it does not print what the tool answered: %s", s.out)
	}
}

func keepsNotes(d *fixture) {
	s := d.attend(d.t.Context(), func(id string) { d.operator("approve", id) },
		"actions", "run", "countersign.note.create", "text=Ana prefers mornings.")
	d.want(s, command.ExitOK, `"id"`)
	c, err := d.environment.Client(d.environment.Tokens().Operator)
	if err != nil {
		d.t.Fatal(err)
	}
	page, err := c.Notes(d.t.Context(), 10, "")
	if err != nil || len(page.Items) != 1 || page.Items[0].Text != "Ana prefers mornings." || page.Items[0].Source != "countersign" {
		d.t.Errorf("Notes = %+v, %v, want the one", page, err)
	}
	if err == nil && !strings.Contains(s.out, page.Items[0].ID.String()) {
		d.t.Errorf("the tool answered %s, want the note's id %s", s.out, page.Items[0].ID)
	}
}

func isDeniedByAPerson(d *fixture) {
	s := d.attend(d.t.Context(), func(id string) { d.operator("deny", id, "--note", "ask Ana first") },
		"actions", "run", "notes:notes.create", "--inputs", `{"title":"Refused","body":"x"}`)

	d.want(s, command.ExitAction, "denied by", "ask Ana first")
}

func isDenied(d *fixture) {
	d.want(d.agent("actions", "run", "notes:notes.delete", "id=x"), command.ExitAction, "policy denies it")
}

func isStopped(d *fixture) {
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	var action string
	s := d.attend(ctx, func(id string) {
		action = id
		stop()
	}, "actions", "run", "notes:notes.create", "title=Left", "body=x")

	d.want(s, command.ExitInterrupted, "countersign get "+action+" --wait=5m", "countersign undo "+action)
	d.want(d.agent("get", action), command.ExitOK, "pending")
	d.want(d.agent("undo", action), command.ExitOK)
}

func asksFirst(d *fixture) {
	s := d.want(d.agent("actions", "run", "notes:notes.create", "title=Asked", "body=x", "--dry-run"), command.ExitOK, "require_approval", "Nothing was done", "--plan plan_")
	_, plan, _ := strings.Cut(s.out, "--plan ")
	plan = strings.TrimSpace(plan)
	d.want(d.agent("actions", "run", "notes:notes.create", "title=Other", "body=x", "--plan", plan), command.ExitFailed, "arguments")
	d.want(d.agent("actions", "run", "notes:notes.create", "title=Asked", "body=x", "--plan", plan, "--no-wait"), command.ExitOK, "waiting for approval")
	inv := decode[wire.Invocation](d.t, d.want(d.agent("actions", "run", "notes:notes.list", "--dry-run", "--json"), command.ExitOK).out)
	if inv.DryRun == nil || inv.DryRun.Plan == "" {
		d.t.Errorf("--dry-run --json is %+v", inv)
	}
}

func refusesToRun(d *fixture) {
	for _, args := range [][]string{
		{}, {"notes:notes.list", "title"}, {"notes:notes.list", "--inputs", "7"}, {"notes:notes.list", "--inputs", "{"}, {"notes:notes.list", "--inputs", "@no-such-file"},
	} {
		d.want(d.agent(append([]string{"actions", "run"}, args...)...), command.ExitUsage, "countersign: ")
	}
	d.want(d.agent("actions", "run", "notes:notes.lost"), command.ExitFailed)
	d.want(d.agent("actions", "run", "notes:notes.create", "title=7"), command.ExitUsage, "/inputs/body")
	file := d.file("inputs.json", `{"title":"From a file"}`)
	d.want(d.agent("actions", "run", "notes:notes.create", "--inputs", "@"+file, "body=x", "--no-wait"), command.ExitOK, "countersign get")
	d.want(d.run(d.t.Context(), d.environment.Tokens().Agent, `{"title":"From a pipe","body":"x"}`, "actions", "run", "notes:notes.create", "--inputs", "-", "--no-wait"), command.ExitOK)
}

func doesNotWait(d *fixture) {
	inv := decode[wire.Invocation](d.t, d.want(d.agent("actions", "run", "notes:notes.create", "title=Later", "body=x", "--no-wait", "--json"), command.ExitOK).out)
	if inv.Status != "pending" || inv.ID == (envelope.ActionID{}) {
		d.t.Errorf("--no-wait is %+v, want it pending", inv)
	}
}

func runsAgain(d *fixture) {
	args := []string{"actions", "run", "notes:notes.list", "--external-id", "run-again", "--json"}
	first := decode[wire.Invocation](d.t, d.want(d.agent(args...), command.ExitOK).out)
	again := decode[wire.Invocation](d.t, d.want(d.agent(args...), command.ExitOK).out)
	if first.ID != again.ID || first.Known || !again.Known {
		d.t.Errorf("run again is %+v, want the first: %+v", again, first)
	}
}

// saysWhen has an environment of its own: its limit would stop the other tests.
func saysWhen(d *fixture) {
	d = open(d.t)
	admin, err := d.environment.Client(d.environment.Tokens().Admin)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := admin.PutSettings(d.t.Context(), wire.Settings{Timezone: "UTC", SessionPending: new(1), SessionMinute: new(1000)}); err != nil {
		d.t.Fatal(err)
	}
	run := []string{"actions", "run", "notes:notes.create", "title=x", "body=x", "--no-wait"}
	d.want(d.agent(run...), command.ExitOK)
	d.want(d.agent(run...), command.ExitFailed, "which is the limit", "try again")
}
