// Package workflows has the commands that run and follow workflows: several
// calls in order, atomic if asked for.
package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command workflow.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("workflow", "Run several calls in order, all or nothing if you like",
		`A workflow is several calls that run in order. A later one may use what an
earlier one answered: a text in its inputs that is wholly a reference, such as
$0.id or $1.hits[0].name, is replaced by that part of the answer of the step,
counted from 0. The long form is $steps.1/hits/0/name, a JSON Pointer behind the
step.

An atomic workflow is all or nothing. It takes only tools that read or declare
how they are reversed, and when a step fails, the steps before it are reversed,
the last first. What cannot be reversed waits for a person: see
"countersign workflow list --needs-operator".`,
		`  countersign workflow run onboarding.json --atomic --dry-run
  countersign workflow run onboarding.json --atomic --wait
  countersign workflow list --needs-operator`,
		run(a), show(a), list(a), cancel(a), retry(a), resolve(a))
}

const runHelp = `Submit a workflow from a file or, for -, from standard input: an array of steps,
or an object with them in "steps". Each step is

  {"tool": "crm:create_contact", "inputs": {"name": "Ana"}}

and may carry risk, approval and constraints as well. What can be known is
checked before anything runs, and every mistake is shown with its place;
--dry-run does nothing else, and tells what policy would decide about each step.

The workflow has a name of your own, its external id, which makes it safe to
send again. It may be left out, and one is made up.

With --wait the command answers when the workflow has ended or needs a person.
The exit code is 3 if it ended otherwise than completed.`

type runFlags struct {
	atomic, dryRun                            bool
	externalID, session, employee, automation string
	wait                                      time.Duration
}

func run(a *command.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE | -",
		Short: "Submit a workflow",
		Long:  runHelp,
		Example: `  countersign workflow run onboarding.json --atomic --dry-run
  countersign workflow run onboarding.json --atomic --external-id onboard-4711 --wait=2m
  echo '[{"tool":"crm:find","inputs":{"name":"Ana"}},{"tool":"mail:send","inputs":{"to":"$0.hits[0].email"}}]' | countersign workflow run -`,
		Args: command.Arguments(1, 1, "one file, or - for standard input"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error { return submit(ctx, a, c, f, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.atomic, "atomic", false, "all of it, or none")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check it, and do nothing")
	flags.StringVar(&f.externalID, "external-id", "", "your own `name` for the workflow, so that sending it again is safe")
	flags.StringVar(&f.session, "session-id", "", "the `session` that the steps belong to")
	flags.StringVar(&f.employee, "employee-id", "", "the `id` of the employee on whose behalf it is")
	flags.StringVar(&f.automation, "automation-id", "", "the `id` of the automation whose rules of policy hold")
	command.WaitFlag(cmd, &f.wait, "answer when it has ended, or after this `duration`")
	return cmd
}

// maxFile bounds a file in bytes.
const maxFile = 4 << 20

func submit(ctx context.Context, a *command.App, c *client.Client, f runFlags, file string) error {
	text, err := a.ReadFile(file, maxFile+1)
	if err != nil {
		return err
	}
	body, err := f.body(text)
	if err != nil {
		return err
	}
	if f.dryRun {
		plan, err := c.PlanWorkflow(ctx, body)
		if err != nil {
			return err
		}
		return showPlan(a, plan)
	}
	s, err := c.SubmitWorkflow(ctx, body, f.wait)
	if err != nil {
		return err
	}
	if s.Known {
		a.Note("It was known already, with the same content; nothing was started a second time.")
	}
	return showOutcome(a, s.Workflow, f.wait > 0)
}

// body returns the workflow as the API takes it: the file, and over it the
// flags.
func (f runFlags) body(text []byte) (json.RawMessage, error) {
	if len(text) > maxFile {
		return nil, command.Misuse("the file is larger than %d bytes", maxFile)
	}
	fields := map[string]json.RawMessage{}
	switch trimmed := strings.TrimSpace(string(text)); {
	case !json.Valid(text):
		return nil, command.Misuse("the file is not JSON: it must be an array of steps, or an object with them in steps")
	case strings.HasPrefix(trimmed, "["):
		fields["steps"] = text
	case json.Unmarshal(text, &fields) != nil:
		return nil, command.Misuse("the file must be an array of steps, or an object with them in steps")
	}
	put := func(name string, value any, given bool) {
		if raw, err := json.Marshal(value); given && err == nil { // text, numbers and booleans are JSON
			fields[name] = raw
		}
	}
	put("atomic", true, f.atomic)
	put("dry_run", true, f.dryRun)
	put("session_id", f.session, f.session != "")
	put("employee_id", f.employee, f.employee != "")
	put("automation_id", f.automation, f.automation != "")
	put("external_id", f.externalID, f.externalID != "")
	_, named := fields["external_id"]
	put("external_id", "cli-"+uuid.NewString(), !named && !f.dryRun)
	put("wait", f.wait.String(), f.wait > 0)
	return json.Marshal(fields)
}

func showPlan(a *command.App, p wire.WorkflowPlan) error {
	if a.JSON {
		return a.WriteJSON(p)
	}
	rows := make([][]string, len(p.Steps))
	for i, s := range p.Steps {
		reversal := ""
		if s.Reversal != nil {
			reversal = s.Reversal.Tool
		}
		rows[i] = []string{strconv.Itoa(s.Step), s.Tool, string(s.Mode), s.ModeSource, strings.Join(s.References, " "), reversal}
	}
	if err := a.Table([]string{"STEP", "TOOL", "MODE", "BECAUSE", "REFERS TO", "REVERSED BY"}, rows); err != nil {
		return err
	}
	a.Note("Nothing was done. Policy decides again when each step runs.")
	return nil
}

// showOutcome shows a workflow and says how to go on. The error is
// command.ErrAction if it ended otherwise than completed.
func showOutcome(a *command.App, b wire.Workflow, waited bool) error {
	if err := showState(a, b); err != nil {
		return err
	}
	switch b.State {
	case "completed":
		return nil
	case "running", "reverting":
		if !waited {
			a.Note("See what becomes of it: countersign workflow show %s --wait", b.ID)
		}
		if b.WaitsFor != nil {
			a.Note("It waits for the action %s: countersign get %s", b.WaitsFor, b.WaitsFor)
		}
		return nil
	case "stuck":
		if b.WaitsFor != nil {
			a.Note("The outcome of an action is unknown; find out, and say so: countersign dlq resolve %s --happened|--did-not --note …", b.WaitsFor)
		}
	case "compensation_failed":
		a.Note("A step could not be reversed. Try it again: countersign workflow retry %s", b.ID)
		a.Note("Or deal with it yourself, and say so: countersign workflow resolve %s --note …", b.ID)
	}
	return command.ErrAction
}

func showState(a *command.App, b wire.Workflow) error {
	if a.JSON {
		return a.WriteJSON(b)
	}
	kind := "workflow"
	if b.Atomic {
		kind = "atomic workflow"
	}
	if _, err := fmt.Fprintf(a.Out, "%s %s is %s%s\n", kind, b.ID, b.State, command.Noted(b.Message)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	rows := make([][]string, len(b.Steps))
	for i, s := range b.Steps {
		id, back := "", ""
		if s.ActionID != nil {
			id = s.ActionID.String()
		}
		if s.Reversal != nil && s.Reversal.ActionID != nil {
			back = s.Reversal.ActionID.String()
		}
		why := strings.TrimSuffix(s.Code+": "+s.Message, ": ")
		rows[i] = []string{strconv.Itoa(s.Step), s.Tool, s.State, id, back, strings.TrimPrefix(why, ": ")}
	}
	return a.Table([]string{"STEP", "TOOL", "STATE", "ACTION", "REVERSED BY", "WHY"}, rows)
}

func show(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a workflow and its steps",
		Long: `Show a workflow and its steps; with --json also what they answered. With --wait
the command answers when the workflow has ended or needs a person. The exit code
is 3 if it ended otherwise than completed.`,
		Example: "  countersign workflow show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --wait",
		Args:    command.Arguments(1, 1, "the id of a workflow"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := workflowID(args[0])
			if err != nil {
				return err
			}
			w, _, err := c.Workflow(ctx, id, wait)
			if err != nil {
				return err
			}
			return showOutcome(a, w, wait > 0)
		}),
	}
	command.WaitFlag(cmd, &wait, "answer when it has ended, or after this `duration`")
	return cmd
}

func workflowID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(id.String()) {
		return id, command.Misuse("that is not the id of a workflow, which has 36 characters; `countersign workflow list` shows them")
	}
	return id, nil
}

func list(a *command.App) *cobra.Command {
	var f client.WorkflowFilter
	states := []string{"running", "reverting", "stuck", "compensation_failed", "completed", "failed", "cancelled", "reverted", "resolved"}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows",
		Long: `List workflows, newest first. An agent's token sees those of its own session.
--needs-operator leaves those that wait for an operator: the outcome of a call
is unknown, or a step could not be reversed.

With --json it is one document, {"items": [...], "next_cursor": ...}.`,
		Example: "  countersign workflow list --needs-operator\n  countersign workflow list --state running --json | jq '.items[].waits_for'",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			page, err := c.Workflows(ctx, f)
			if err != nil {
				return err
			}
			return view().ShowPage(a, page)
		}),
	}
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.State, "state", "only those of this `state`: "+strings.Join(states, ", "), states...)
	flags.BoolVar(&f.NeedsOperator, "needs-operator", false, "only those that wait for an operator")
	flags.StringVar(&f.Session, "session-id", "", "only those of this `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "only the one of this `name` of yours")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func view() command.View[wire.Workflow] {
	return command.View[wire.Workflow]{
		Empty: "There are none.", Head: []string{"ID", "STATE", "ATOMIC", "DONE", "SUBMITTED", "EXTERNAL ID", "WHY"},
		Row: func(w wire.Workflow) []string {
			atomic, done := "", 0
			if w.Atomic {
				atomic = "yes"
			}
			for _, s := range w.Steps {
				if s.State == "done" {
					done++
				}
			}
			return []string{
				w.ID.String(), w.State, atomic, fmt.Sprintf("%d/%d", done, len(w.Steps)), command.Local(&w.CreatedAt), w.ExternalID, w.Message,
			}
		},
	}
}

// newChange returns a command that changes the workflow of an id and shows it.
func newChange(a *command.App, use string, help command.Help, change func(context.Context, *client.Client, uuid.UUID) (wire.Workflow, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: help.Short, Long: help.Long, Example: help.Example, Args: command.Arguments(1, 1, "the id of a workflow"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := workflowID(args[0])
			if err != nil {
				return err
			}
			w, err := change(ctx, c, id)
			if err != nil {
				return err
			}
			return showState(a, w)
		}),
	}
}

func cancel(a *command.App) *cobra.Command {
	return newChange(a, "cancel ID", command.Help{
		Short: "Stop a workflow",
		Long: `Stop a workflow. The current step is taken back if it has not been sent, and
otherwise runs to its end. The steps that an atomic workflow has done are then
reversed; those of another stay.`,
		Example: "  countersign workflow cancel 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
	}, func(ctx context.Context, c *client.Client, id uuid.UUID) (wire.Workflow, error) {
		return c.CancelWorkflow(ctx, id)
	})
}

func retry(a *command.App) *cobra.Command {
	var note string
	cmd := newChange(a, "retry ID", command.Help{
		Short: "Retry the reversal that failed",
		Long: `Retry the reversal that failed. It is made again by what the catalog declares
now, so that a wrong declaration can be corrected first. A step that found its
effect there already is reversed by this too.`,
		Example: `  countersign workflow list --needs-operator
  countersign workflow retry 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "the CRM is back"`,
	}, func(ctx context.Context, c *client.Client, id uuid.UUID) (wire.Workflow, error) {
		return c.RetryWorkflow(ctx, id, note)
	})
	cmd.Flags().StringVar(&note, "note", "", "why, for the record")
	return cmd
}

func resolve(a *command.App) *cobra.Command {
	var r wire.WorkflowResolution
	cmd := newChange(a, "resolve ID", command.Help{
		Short: "Say that you have dealt with the reversal that failed",
		Long: `Say that you have dealt with the reversal that failed. The steps before it are
then reversed as well. With --abandon everything stays as it is, and the
workflow ends; that also ends one that is stuck.`,
		Example: `  countersign workflow resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "deleted by hand"
  countersign workflow resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --abandon --note "they want to keep it"`,
	}, func(ctx context.Context, c *client.Client, id uuid.UUID) (wire.Workflow, error) {
		if r.Note == "" {
			return wire.Workflow{}, command.Misuse("--note must say what you did, for the record")
		}
		return c.ResolveWorkflow(ctx, id, r)
	})
	cmd.Flags().StringVar(&r.Note, "note", "", "what you did, for the record (required)")
	cmd.Flags().BoolVar(&r.Abandon, "abandon", false, "leave everything as it is")
	return cmd
}
