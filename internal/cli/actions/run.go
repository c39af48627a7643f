package actions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/source"
)

// showDryRun says what would become of a call.
func showDryRun(a *command.App, inv client.Invocation) error {
	dry := inv.DryRun
	switch {
	case dry == nil:
		return errors.New("the server did not answer as to a dry run; is it of this version?")
	case a.JSON:
		return a.WriteJSON(inv)
	}
	goes := "only when an operator says so, or never"
	if dry.GoesOutAt != nil {
		goes = dry.GoesOutAt.Local().Format(time.DateTime) + " at the soonest"
	}
	rows := [][]string{
		{"tool", dry.Call.Source + ":" + dry.Call.Tool},
		{"would", string(dry.Would)},
		{"policy", string(inv.Policy.Mode) + " (" + because(inv.Policy) + ")"},
		{"goes out", goes},
		{"arguments", command.Compact(dry.Call.Args)},
	}
	for _, g := range dry.Gates {
		if g.Verdict != preflight.Pass {
			rows = append(rows, []string{"gate " + g.Gate, string(g.Verdict) + ": " + g.Message})
		}
	}
	if err := command.Table(a.Out, []string{"WHAT", "IT SAYS"}, rows); err != nil {
		return err
	}
	a.Note("Nothing was done. To do just this within the hour, add:")
	if _, err := fmt.Fprintf(a.Out, "--plan %s\n", dry.Plan); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

const actionsRunHelp = `Call a tool and print what it answered. What policy allows runs at once; what it
denies fails at once; while a person has to decide, or the action waits for its
time or turn, the command waits too and says so on standard error. Ended by
Ctrl-C, it leaves the action as it is and says how to go on.

TOOL is source:name, a full name such as mail.letter.send, or a name that only
one source has. Arguments are given as name=value, where the value is JSON or
else a text, and a.b=value reaches into an object; or all at once by --inputs.

--dry-run says what would happen, and does nothing. It also prints a plan; a
call that presents it with --plan is refused if the arguments, the tool or what
policy says have changed since.

The exit code is 0 when it was done, and 3 if it was denied, expired, failed, or
nobody knows.`

// runFlags are a call in flags.
type runFlags struct {
	inputs, externalID, plan string
	dryRun, noWait           bool
}

func run(a *command.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run TOOL [NAME=VALUE...]",
		Short: "Call a tool, and wait while it is pending",
		Long:  actionsRunHelp,
		Example: `  countersign actions run notes:notes.create title=Hello body=World
  countersign actions run mail:send --inputs @letter.json --external-id welcome-4711
  countersign actions run mail:send --inputs @letter.json --dry-run
  countersign actions run notes:notes.list --json | jq .outputs`,
		Args: command.Arguments(1, command.Many, "a tool"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error { return runAction(ctx, a, c, f, args) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.inputs, "inputs", "", "the tool's arguments as a `JSON` object; @FILE reads a file, - standard input")
	flags.StringVar(&f.externalID, "external-id", "", "your own `name` for the action, so that sending it again is safe")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would happen, and do nothing")
	flags.StringVar(&f.plan, "plan", "", "the `plan` that a dry run of this call printed")
	flags.BoolVar(&f.noWait, "no-wait", false, "answer at once, also if it is pending")
	return cmd
}

func runAction(ctx context.Context, a *command.App, c *client.Client, f runFlags, args []string) error {
	call, err := callOf(a, f, args[1:])
	if err != nil {
		return err
	}
	inv, err := c.Invoke(ctx, args[0], call)
	switch {
	case ctx.Err() != nil && !f.dryRun:
		fmt.Fprintf(a.Err, "It was stopped before the server answered. To see what became of it: countersign list --external-id %s\n", call.ExternalID)
		return err
	case err != nil && inv.ID == (envelope.ActionID{}):
		return err
	case f.dryRun:
		return showDryRun(a, inv)
	}
	if inv.Known {
		a.Note("It was known already, with the same content; nothing was proposed a second time.")
	}
	if pendingStill(inv.Status) && !f.noWait {
		if inv, err = waitOut(ctx, a, c, inv); err != nil {
			return err
		}
	}
	return showInvocation(a, inv)
}

// callOf is the call that flags and arguments ask for. Without a name it gets
// one, so that it is accepted; a script that may run twice gives its own.
func callOf(a *command.App, f runFlags, sets []string) (client.Call, error) {
	inputs, err := readInputs(a, f.inputs)
	if err != nil {
		return client.Call{}, err
	}
	for _, set := range sets {
		if !strings.Contains(set, "=") {
			return client.Call{}, command.Misuse("an argument is given as name=value, such as title=Hello")
		}
		if inputs, err = command.Assign(inputs, set); err != nil {
			return client.Call{}, err
		}
	}
	call := client.Call{Inputs: inputs, ExternalID: f.externalID, DryRun: f.dryRun, Plan: f.plan}
	if f.noWait {
		call.Wait = new(envelope.Duration(0))
	}
	if call.ExternalID == "" && !f.dryRun {
		id, err := uuid.NewV7()
		if err != nil {
			return client.Call{}, fmt.Errorf("make a name: %w", err)
		}
		call.ExternalID = "cli-" + id.String()
	}
	return call, nil
}

// readInputs reads the arguments of --inputs: JSON, a file, or standard input.
func readInputs(a *command.App, text string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if text == "-" || isFile {
		in, err := a.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		raw, err := io.ReadAll(io.LimitReader(in, envelope.MaxBytes+1))
		if err != nil {
			return nil, fmt.Errorf("read the inputs: %w", err)
		}
		text = string(raw)
	}
	raw := json.RawMessage(cmp.Or(strings.TrimSpace(text), "{}"))
	if !json.Valid(raw) || raw[0] != '{' {
		return nil, command.Misuse("--inputs must be a JSON object, such as '{\"title\": \"Hello\"}'")
	}
	return raw, nil
}

func pendingStill(s execution.Status) bool {
	return s == execution.StatusPending || s == execution.StatusExecuting
}

// waitOut waits until an action has ended, and says what for whenever that
// changes.
func waitOut(ctx context.Context, a *command.App, c *client.Client, inv client.Invocation) (client.Invocation, error) {
	said := ""
	for pendingStill(inv.Status) {
		if now := waitingText(inv); now != said {
			a.Note("%s", now)
			said = now
		}
		act, _, err := c.Wait(ctx, inv.ID, time.Minute)
		if err != nil {
			fmt.Fprintf(a.Err, "The action is left as it is. To go on waiting: countersign get %s --wait=5m\nTo take it back: countersign undo %s\n", inv.ID, inv.ID)
			return inv, err
		}
		inv = invocationOf(act, inv.Known)
	}
	return inv, nil
}

// waitingText says what an action waits for.
func waitingText(inv client.Invocation) string {
	switch {
	case inv.Waiting == nil:
		return fmt.Sprintf("%s is being executed…", inv.ID)
	case inv.Waiting.For == outbox.WaitsApproval && inv.Decision != nil && inv.Decision.ExpiresAt != nil:
		return fmt.Sprintf("waiting for approval of %s, until %s…", inv.ID, inv.Decision.ExpiresAt.Local().Format(time.DateTime))
	case inv.Waiting.For == outbox.WaitsApproval:
		return fmt.Sprintf("waiting for approval of %s…", inv.ID)
	}
	return fmt.Sprintf("%s waits for %s…", inv.ID, command.Line(inv.Waiting.Message))
}

// invocationOf is an action in the form of a call's answer.
func invocationOf(act client.Action, known bool) client.Invocation {
	e := act.Envelope
	inv := client.Invocation{
		ID: e.ActionID, Status: execution.StatusOf(e.Approval, e.Result.Status), Phase: act.Phase, Tool: e.Tool.Source + ":" + e.Tool.Name,
		Known: known, Outputs: source.Outputs(e.Result.Output), Error: e.Result.Error, Attempts: e.Result.Attempts,
		StartedAt: e.Timestamps.SentAt, FinishedAt: e.Timestamps.CompletedAt,
		Policy: act.Policy, Decision: act.Decision, Waiting: act.Waiting,
	}
	if inv.StartedAt != nil && inv.FinishedAt != nil {
		inv.DurationMS = new(inv.FinishedAt.Sub(*inv.StartedAt).Milliseconds())
	}
	return inv
}

// showInvocation prints what a tool answered, or why it was not called. The
// error is errEnvelope if there was no effect, or nobody knows.
func showInvocation(a *command.App, inv client.Invocation) error {
	var failed error
	if inv.Status != execution.StatusSuccess && !pendingStill(inv.Status) {
		failed = command.ErrAction
	}
	if a.JSON {
		if err := a.WriteJSON(inv); err != nil {
			return err
		}
		return failed
	}
	switch {
	case inv.Status == execution.StatusSuccess:
		return showOutputs(a, inv.Outputs)
	case failed == nil:
		a.Note("%s", waitingText(inv))
		a.Note("To wait for it: countersign get %s --wait=5m", inv.ID)
	default:
		a.Note("%s: %s", inv.ID, whyUndone(inv))
	}
	return failed
}

// whyUndone says why a call was not done.
func whyUndone(inv client.Invocation) string {
	why := ""
	if inv.Error != nil {
		why = ": " + command.Line(cmp.Or(inv.Error.Message, inv.Error.Code))
	}
	switch inv.Status {
	case execution.StatusDenied:
		if inv.Policy.Mode == envelope.ModeDeny {
			return "policy denies it (" + command.Line(because(inv.Policy)) + ")"
		}
		if inv.Decision != nil && inv.Decision.By != "" {
			return "denied by " + command.Line(inv.Decision.By) + command.Noted(inv.Decision.Note)
		}
		return "denied" + why
	case execution.StatusExpired:
		return "nobody decided in time; propose it again if it is still wanted"
	case execution.StatusUnknown:
		return "nobody knows whether it happened; do not repeat it" + why
	case execution.StatusSkipped:
		return "skipped" + why
	case execution.StatusError, execution.StatusSuccess, execution.StatusPending, execution.StatusExecuting, execution.StatusDryRun:
	}
	return "it failed" + why
}

// showOutputs prints JSON for people: indented, and safe for a terminal.
func showOutputs(a *command.App, outputs json.RawMessage) error {
	if len(outputs) == 0 || string(outputs) == "null" {
		a.Note("Done; the tool answered nothing.")
		return nil
	}
	var text bytes.Buffer
	if err := json.Indent(&text, outputs, "", "  "); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	var failed []error
	for row := range strings.Lines(text.String()) {
		_, err := fmt.Fprintln(a.Out, command.Safe(strings.TrimSuffix(row, "\n")))
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
