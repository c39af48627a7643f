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
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Command returns the command workflow.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("workflow", run(a), show(a), list(a), cancel(a), retry(a), resolve(a))
}

type runFlags struct {
	atomic, dryRun                            bool
	externalID, session, employee, automation string
	wait                                      time.Duration
}

func run(a *command.App) *cobra.Command {
	var f runFlags
	cmd := command.New(a, "run FILE | -", command.Arguments(1, 1, "one file, or - for standard input"), func(ctx context.Context, c *client.Client, args []string) error { return submit(ctx, a, c, f, args[0]) })
	flags := cmd.Flags()
	flags.BoolVar(&f.atomic, "atomic", false, "reverse completed steps if a step fails")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check the workflow without running it")
	flags.StringVar(&f.externalID, "external-id", "", "external id: your own `name` for the workflow, which makes it safe to send again")
	flags.StringVar(&f.session, "session-id", "", "`session` of the steps")
	flags.StringVar(&f.employee, "employee-id", "", "`id` of the employee that the agent acts for")
	command.AutomationFlag(cmd, &f.automation, "`id` of the automation, whose policy applies")
	command.WaitFlag(cmd, &f.wait, "wait until it ends, for at most this `duration`")
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
		return command.Show(a, showPlan)(c.PlanWorkflow(ctx, body))
	}
	s, err := c.SubmitWorkflow(ctx, body, f.wait)
	if err != nil {
		return err
	}
	if s.Known {
		a.Note("Already started with the same content; nothing was started again.")
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
	err := command.Table(a, p.Steps, []string{"STEP", "TOOL", "MODE", "BECAUSE", "REFERS TO", "REVERSED BY"}, func(s wire.PlannedStep) []string {
		reversal := ""
		if s.Reversal != nil {
			reversal = s.Reversal.Tool
		}
		return []string{strconv.Itoa(s.Step), s.Tool, string(s.Mode), policy.SourceText(s.ModeSource), strings.Join(s.References, " "), reversal}
	})
	if err != nil {
		return err
	}
	a.Note("Nothing was done. Policy decides again when each step runs.")
	return nil
}

// showOutcome shows a workflow and the commands to continue with. The error is
// command.ErrAction if it did not complete.
func showOutcome(a *command.App, b wire.Workflow, waited bool) error {
	if err := command.Show(a, showState)(b, nil); err != nil {
		return err
	}
	switch b.State {
	case "completed":
		return nil
	case "running", "reverting":
		if !waited {
			a.Note("To see the result: countersign workflow show %s --wait", b.ID)
		}
		if b.WaitsFor != nil {
			a.Note("It waits for the action %s: countersign get %s", b.WaitsFor, b.WaitsFor)
		}
		return nil
	case "stuck":
		if b.WaitsFor != nil {
			a.Note("The outcome of an action is unknown; find out, then record it: countersign dlq resolve %s --happened|--did-not --note …", b.WaitsFor)
		}
	case "compensation_failed":
		a.Note("A step could not be reversed. Try it again: countersign workflow retry %s", b.ID)
		a.Note("Or revert it yourself, and record it: countersign workflow resolve %s --note …", b.ID)
	}
	return command.ErrAction
}

func showState(a *command.App, b wire.Workflow) error {
	kind := "workflow"
	if b.Atomic {
		kind = "atomic workflow"
	}
	if err := a.Print("%s %s is %s%s\n", kind, b.ID, b.State, command.Noted(b.Message)); err != nil {
		return err
	}
	return command.Table(a, b.Steps, []string{"STEP", "TOOL", "STATE", "ACTION", "REVERSED BY", "WHY"}, func(s wire.WorkflowStep) []string {
		id, back := "", ""
		if s.ActionID != nil {
			id = s.ActionID.String()
		}
		if s.Reversal != nil && s.Reversal.ActionID != nil {
			back = s.Reversal.ActionID.String()
		}
		why := strings.TrimSuffix(s.Code+": "+s.Message, ": ")
		return []string{strconv.Itoa(s.Step), s.Tool, s.State, id, back, strings.TrimPrefix(why, ": ")}
	})
}

func show(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := command.New(a, "show ID", command.Arguments(1, 1, "a workflow id"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := workflowID(args[0])
		if err != nil {
			return err
		}
		w, _, err := c.Workflow(ctx, id, wait)
		if err != nil {
			return err
		}
		return showOutcome(a, w, wait > 0)
	})
	command.WaitFlag(cmd, &wait, "wait until it ends, for at most this `duration`")
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
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view().ShowPage(a)(c.Workflows(ctx, f))
	})
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.State, "state", "filter by `state`: "+strings.Join(states, ", "), states...)
	flags.BoolVar(&f.NeedsOperator, "needs-operator", false, "show only workflows that wait for an operator")
	flags.StringVar(&f.Session, "session-id", "", "filter by `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "filter by external id, the `name` that you gave")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func view() command.View[wire.Workflow] {
	return command.View[wire.Workflow]{
		Empty: "No matching workflows.", Head: []string{"ID", "STATE", "ATOMIC", "DONE", "SUBMITTED", "EXTERNAL ID", "WHY"},
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
func newChange(a *command.App, use string, change func(*client.Client, context.Context, uuid.UUID) (wire.Workflow, error)) *cobra.Command {
	return command.New(a, use, command.Arguments(1, 1, "a workflow id"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := workflowID(args[0])
		if err != nil {
			return err
		}
		return command.Show(a, showState)(change(c, ctx, id))
	})
}

func cancel(a *command.App) *cobra.Command {
	return newChange(a, "cancel ID", (*client.Client).CancelWorkflow)
}

func retry(a *command.App) *cobra.Command {
	var note string
	cmd := newChange(a, "retry ID", func(c *client.Client, ctx context.Context, id uuid.UUID) (wire.Workflow, error) {
		return c.RetryWorkflow(ctx, id, note)
	})
	cmd.Flags().StringVar(&note, "note", "", "reason, for the audit log")
	return cmd
}

func resolve(a *command.App) *cobra.Command {
	var r wire.WorkflowResolution
	cmd := newChange(a, "resolve ID", func(c *client.Client, ctx context.Context, id uuid.UUID) (wire.Workflow, error) {
		if r.Note == "" {
			return wire.Workflow{}, command.Misuse("--note is required: what you did, for the audit log")
		}
		return c.ResolveWorkflow(ctx, id, r)
	})
	cmd.Flags().StringVar(&r.Note, "note", "", "what you did, for the audit log (required)")
	cmd.Flags().BoolVar(&r.Abandon, "abandon", false, "do not reverse the remaining steps")
	return cmd
}
