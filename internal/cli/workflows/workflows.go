// Package workflows has the commands that run and follow workflows: several
// calls in order, atomic if asked for.
package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const batchHelp = `A batch is several calls that run in order. A later one may use what an earlier
one answered: a text in its inputs that is wholly a reference, such as $0.id or
$1.hits[0].name, is replaced by that part of the answer of the step, counted from
0. The long form is $steps.1/hits/0/name, a JSON Pointer behind the step.

An atomic batch is all or nothing. It takes only tools that read or declare how
they are taken back, and when a step fails, what was done before it is taken
back, the last first. What cannot be taken back waits for a person: see
"countersign batch list --troubled".`

// Command returns the command batch.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Run several calls in order, all or nothing if you like",
		Long:  batchHelp,
		Example: `  countersign batch run onboarding.json --atomic --dry-run
  countersign batch run onboarding.json --atomic --wait
  countersign batch list --troubled`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,
	}
	cmd.AddCommand(batchRun(a), batchShow(a), batchList(a), batchCancel(a), batchRetry(a), batchResolve(a))
	return cmd
}

const batchRunHelp = `Submit a batch from a file or, for -, from standard input: an array of steps, or
an object with them in "steps". Each step is

  {"tool": "crm:create_contact", "inputs": {"name": "Ana"}}

and may carry risk, approval and constraints as well. What can be known is
checked before anything runs, and every mistake is shown with its place;
--dry-run does nothing else, and tells what policy would decide about each step.

The batch has a name of your own, its external id, which makes it safe to send
again. It may be left out, and one is made up.

With --wait the command answers when the batch has ended or needs a person. The
exit code is 3 if it ended otherwise than completed.`

type batchRunFlags struct {
	atomic, dryRun                            bool
	externalID, session, employee, automation string
	wait                                      time.Duration
}

func batchRun(a *command.App) *cobra.Command {
	var f batchRunFlags
	cmd := &cobra.Command{
		Use:   "run FILE | -",
		Short: "Submit a batch",
		Long:  batchRunHelp,
		Example: `  countersign batch run onboarding.json --atomic --dry-run
  countersign batch run onboarding.json --atomic --external-id onboard-4711 --wait=2m
  echo '[{"tool":"crm:find","inputs":{"name":"Ana"}},{"tool":"mail:send","inputs":{"to":"$0.hits[0].email"}}]' | countersign batch run -`,
		Args: command.Arguments(1, 1, "one file, or - for standard input"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return runBatch(ctx, a, c, f, args[0])
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.atomic, "atomic", false, "all of it, or none")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check it, and do nothing")
	flags.StringVar(&f.externalID, "external-id", "", "your own `name` for the batch, so that sending it again is safe")
	flags.StringVar(&f.session, "session", "", "the `session` that the steps belong to")
	flags.StringVar(&f.employee, "employee", "", "the `id` of the employee on whose behalf it is")
	flags.StringVar(&f.automation, "automation", "", "the `id` of the automation whose rules of policy hold")
	command.WaitFlag(cmd, &f.wait, "answer when it has ended, or after this `duration`")
	return cmd
}

func runBatch(ctx context.Context, a *command.App, c *client.Client, f batchRunFlags, file string) error {
	in, err := a.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, maxBatch+1))
	if err != nil {
		return fmt.Errorf("read the batch: %w", err)
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
		a.Note("It was known already, with the same content; nothing was begun a second time.")
	}
	return showBatchOutcome(a, s.Workflow, f.wait > 0)
}

// maxBatch bounds a file in bytes.
const maxBatch = 4 << 20

// body is the batch as the API takes it: what the file says, and over it what
// the flags say.
func (f batchRunFlags) body(text []byte) (json.RawMessage, error) {
	if len(text) > maxBatch {
		return nil, command.Misuse("the file is larger than %d bytes", maxBatch)
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
	put("wait", envelope.Duration(f.wait), f.wait > 0)
	return json.Marshal(fields)
}

func showPlan(a *command.App, p client.WorkflowPlan) error {
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
	if err := command.Table(a.Out, []string{"STEP", "TOOL", "MODE", "BECAUSE", "REFERS TO", "TAKEN BACK BY"}, rows); err != nil {
		return err
	}
	a.Note("Nothing was done. Policy decides again when a step's turn comes.")
	return nil
}

// showBatchOutcome shows a batch and says how to go on. The error is
// errEnvelope if it ended otherwise than completed.
func showBatchOutcome(a *command.App, b client.Workflow, waited bool) error {
	if err := showBatchState(a, b); err != nil {
		return err
	}
	switch b.State {
	case "completed":
		return nil
	case "running", "reverting":
		if !waited {
			a.Note("See what becomes of it: countersign batch show %s --wait", b.ID)
		}
		if b.WaitsFor != nil {
			a.Note("It waits for the action %s: countersign get %s", b.WaitsFor, b.WaitsFor)
		}
		return nil
	case "stuck":
		if b.WaitsFor != nil {
			a.Note("Nobody knows what became of an action; find out, and say so: countersign dlq resolve %s --happened|--did-not --note …", b.WaitsFor)
		}
	case "compensation_failed":
		a.Note("Something could not be taken back. Try it again: countersign batch retry %s", b.ID)
		a.Note("Or see to it yourself, and say so: countersign batch resolve %s --note …", b.ID)
	}
	return command.ErrAction
}

func showBatchState(a *command.App, b client.Workflow) error {
	if a.JSON {
		return a.WriteJSON(b)
	}
	kind := "batch"
	if b.Atomic {
		kind = "atomic batch"
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
	return command.Table(a.Out, []string{"STEP", "TOOL", "STATE", "ACTION", "TAKEN BACK BY", "WHY"}, rows)
}

func batchShow(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a batch and its steps",
		Long: `Show a batch and its steps; with --json also what they answered. With --wait the
command answers when the batch has ended or needs a person. The exit code is 3
if it ended otherwise than completed.`,
		Example: "  countersign batch show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --wait",
		Args:    command.Arguments(1, 1, "the id of a batch"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := batchID(args[0])
			if err != nil {
				return err
			}
			b, _, err := c.Workflow(ctx, id, wait)
			if err != nil {
				return err
			}
			return showBatchOutcome(a, b, wait > 0)
		}),
	}
	command.WaitFlag(cmd, &wait, "answer when it has ended, or after this `duration`")
	return cmd
}

func batchID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(id.String()) {
		return id, command.Misuse("that is not the id of a batch, which has 36 characters; `countersign batch list` shows them")
	}
	return id, nil
}

func batchList(a *command.App) *cobra.Command {
	var f client.WorkflowFilter
	states := []string{"running", "reverting", "stuck", "compensation_failed", "completed", "failed", "cancelled", "reverted", "resolved"}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List batches",
		Long: `List batches, the newest first. An agent's token sees those of its own session.
--troubled leaves those that wait for an operator: nobody knows what became of a
call, or something that was done could not be taken back.

With --json it is one document, {"items": [...], "next_cursor": ...}.`,
		Example: "  countersign batch list --troubled\n  countersign batch list --state running --json | jq '.items[].waits_for'",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			if err := command.OneOf("state", f.State, states...); err != nil {
				return err
			}
			if f.Limit < 1 || f.Limit > command.MaxPage {
				return command.Misuse("--limit must be from 1 to %d", command.MaxPage)
			}
			page, err := c.Workflows(ctx, f)
			if err != nil {
				return err
			}
			return showBatches(a, page)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.State, "state", "", "only those of this `state`: "+strings.Join(states, ", "))
	flags.BoolVar(&f.NeedsOperator, "troubled", false, "only those that wait for an operator")
	flags.StringVar(&f.Session, "session", "", "only those of this `session`")
	flags.StringVar(&f.ExternalID, "external-id", "", "only the one of this `name` of yours")
	flags.IntVar(&f.Limit, "limit", 50, "how many a page, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	command.Fixed(cmd, "state", states...)
	return cmd
}

func showBatches(a *command.App, page client.Page[client.Workflow]) error {
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("There are none.")
		return nil
	}
	rows := make([][]string, len(page.Items))
	for i, b := range page.Items {
		atomic := ""
		if b.Atomic {
			atomic = "yes"
		}
		done := 0
		for _, s := range b.Steps {
			if s.State == "done" {
				done++
			}
		}
		rows[i] = []string{b.ID.String(), b.State, atomic, fmt.Sprintf("%d/%d", done, len(b.Steps)), command.Local(&b.CreatedAt), b.ExternalID, b.Message}
	}
	if err := command.Table(a.Out, []string{"ID", "STATE", "ATOMIC", "DONE", "SUBMITTED", "EXTERNAL ID", "WHY"}, rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}

func batchCancel(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Have a batch go no further",
		Long: `Have a batch go no further. The step whose turn it is is taken back if nothing
of it has been sent, and otherwise comes to its end. What an atomic batch has
done is then taken back; what another has done stays.`,
		Example: "  countersign batch cancel 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "the id of a batch"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return changeBatch(a, args[0], func(id uuid.UUID) (client.Workflow, error) { return c.CancelWorkflow(ctx, id) })
		}),
	}
}

func batchRetry(a *command.App) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Ask again for the reversal that failed",
		Long: `Ask again for the reversal that failed. It is made anew by what the catalog
declares now, so that a declaration that was wrong can be put right first. A
step that found its effect there already is taken back by this too.`,
		Example: `  countersign batch list --troubled
  countersign batch retry 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "the CRM is back"`,
		Args: command.Arguments(1, 1, "the id of a batch"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return changeBatch(a, args[0], func(id uuid.UUID) (client.Workflow, error) { return c.RetryWorkflow(ctx, id, note) })
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "why, for the record")
	return cmd
}

func batchResolve(a *command.App) *cobra.Command {
	var note string
	var abandon bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "Say that you have seen to the reversal that failed",
		Long: `Say that you have seen to the reversal that failed. What was done before that
step is then taken back as well. With --abandon everything stays as it is, and
the batch ends; that also ends one that is stuck.`,
		Example: `  countersign batch resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --note "deleted by hand"
  countersign batch resolve 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --abandon --note "they want to keep it"`,
		Args: command.Arguments(1, 1, "the id of a batch"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if note == "" {
				return command.Misuse("--note must say what you did, for the record")
			}
			return changeBatch(a, args[0], func(id uuid.UUID) (client.Workflow, error) { return c.ResolveWorkflow(ctx, id, note, abandon) })
		}),
	}
	cmd.Flags().StringVar(&note, "note", "", "what you did, for the record (required)")
	cmd.Flags().BoolVar(&abandon, "abandon", false, "leave everything as it stands")
	return cmd
}

// changeBatch makes a change and shows what the batch is then.
func changeBatch(a *command.App, text string, change func(uuid.UUID) (client.Workflow, error)) error {
	id, err := batchID(text)
	if err != nil {
		return err
	}
	b, err := change(id)
	if err != nil {
		return err
	}
	return showBatchState(a, b)
}
