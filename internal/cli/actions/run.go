package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// runFlags are a call in flags.
type runFlags struct {
	inputs, externalID, plan, automation string
	dryRun, noWait                       bool
}

func run(a *command.App) *cobra.Command {
	var f runFlags
	cmd := command.New(a, "run TOOL [NAME=VALUE...]", command.Arguments(1, command.Many, "a tool"), func(ctx context.Context, c *client.Client, args []string) error { return runTool(ctx, a, c, f, args) })
	flags := cmd.Flags()
	flags.StringVar(&f.inputs, "inputs", "{}", "arguments of the tool as a `JSON` object; @FILE reads a file, - reads standard input")
	flags.Lookup("inputs").DefValue = ""
	flags.StringVar(&f.externalID, "external-id", "", "external id: your own `name` for the action, which makes it safe to send again")
	command.AutomationFlag(cmd, &f.automation, "`automation` that proposes the action")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would happen without doing it")
	flags.StringVar(&f.plan, "plan", "", "`plan` printed by a dry run of this call")
	flags.BoolVar(&f.noWait, "no-wait", false, "return at once, even if the action is pending")
	return cmd
}

func runTool(ctx context.Context, a *command.App, c *client.Client, f runFlags, args []string) error {
	call, err := f.call(ctx, a, c, args)
	if err != nil {
		return err
	}
	inv, err := c.Invoke(ctx, args[0], call)
	switch {
	case ctx.Err() != nil && !f.dryRun:
		fmt.Fprintf(a.Err, "Stopped before the server answered. To see the result: countersign list --external-id %s\n", call.ExternalID)
		return err
	case err != nil && inv.ID == (envelope.ActionID{}):
		return err
	case f.dryRun:
		return showDryRun(a, inv)
	}
	if inv.Known {
		a.Note("Already proposed with the same content; nothing was proposed again.")
	}
	if isPending(inv.Status) && !f.noWait {
		if inv, err = waitForEnd(ctx, a, c, args[0], call, inv); err != nil {
			return err
		}
	}
	return showInvocation(a, inv)
}

// call returns the call that the flags and arguments ask for. Without an
// external id it gets one, so that it is accepted; a script that may run twice
// gives its own.
func (f runFlags) call(ctx context.Context, a *command.App, c *client.Client, args []string) (wire.Call, error) {
	text := f.inputs
	if text == "-" {
		text = "@-"
	}
	inputs, err := a.JSONText(text)
	if err != nil || strings.TrimSpace(string(inputs))[0] != '{' {
		return wire.Call{}, command.Misuse("--inputs must be a JSON object, such as '{\"title\": \"Hello\"}', or @ and the name of a file that holds one")
	}
	var tool wire.Tool
	if len(args) > 1 {
		// Without the tool the values are JSON or strings; the call reports an
		// unknown tool.
		if tool, err = c.Tool(ctx, args[0]); err != nil && !errors.Is(err, client.ErrNotFound) {
			return wire.Call{}, err
		}
	}
	for _, set := range args[1:] {
		if inputs, err = command.Assign(inputs, tool.InputSchema, set); err != nil {
			return wire.Call{}, err
		}
	}
	call := wire.Call{Inputs: inputs, ExternalID: f.externalID, AutomationID: f.automation, DryRun: f.dryRun, Plan: f.plan}
	if f.noWait {
		call.Wait = new(envelope.Duration(0))
	}
	if !f.dryRun {
		call.ExternalID = cmp.Or(call.ExternalID, "cli-"+uuid.NewString())
	}
	return call, nil
}

func isPending(s wire.ExecutionStatus) bool {
	return s == wire.ExecutionPending || s == wire.ExecutionExecuting
}

// waitForEnd waits until an action has ended, and prints its state whenever it
// changes. The outcome is that of the same call, sent again under its name.
func waitForEnd(ctx context.Context, a *command.App, c *client.Client, tool string, call wire.Call, inv wire.Invocation) (wire.Invocation, error) {
	last := ""
	for known := inv.Known; isPending(inv.Status); inv.Known = known {
		if now := waitingText(inv); now != last {
			a.Note("%s", now)
			last = now
		}
		_, _, err := c.Wait(ctx, inv.ID, time.Minute)
		if err == nil {
			var again wire.Invocation
			if again, err = c.Invoke(ctx, tool, call); again.ID == inv.ID {
				inv, err = again, nil
			}
		}
		if err != nil {
			fmt.Fprintf(a.Err, "The action was not changed. To keep waiting: countersign get %s --wait=5m\nTo take it back: countersign undo %s\n", inv.ID, inv.ID)
			return inv, err
		}
	}
	return inv, nil
}

// waitingText describes the state that an action waits in.
func waitingText(inv wire.Invocation) string {
	switch {
	case inv.Waiting == nil:
		return fmt.Sprintf("%s is being executed…", inv.ID)
	case inv.Waiting.For == "approval" && inv.Decision != nil && inv.Decision.ExpiresAt != nil:
		return fmt.Sprintf("waiting for approval of %s, until %s…", inv.ID, inv.Decision.ExpiresAt.Local().Format(time.DateTime))
	case inv.Waiting.For == "approval":
		return fmt.Sprintf("waiting for approval of %s…", inv.ID)
	}
	return fmt.Sprintf("%s waits for %s…", inv.ID, command.Line(inv.Waiting.Message))
}

// showInvocation prints the result of a tool, or the reason why it was not
// called. The error is command.ErrAction if there was no effect, or it is
// unknown.
func showInvocation(a *command.App, inv wire.Invocation) error {
	var failed error
	if inv.Status != wire.ExecutionSuccess && !isPending(inv.Status) {
		failed = command.ErrAction
	}
	switch {
	case a.JSON:
		if err := a.WriteJSON(inv); err != nil {
			return err
		}
	case inv.Status == wire.ExecutionSuccess && (len(inv.Outputs) == 0 || string(inv.Outputs) == "null"):
		a.Note("Done; the tool returned nothing.")
	case inv.Status == wire.ExecutionSuccess:
		return a.Print("%s\n", command.Indented(inv.Outputs))
	case failed == nil:
		a.Note("%s", waitingText(inv))
		a.Note("To wait for it: countersign get %s --wait=5m", inv.ID)
	default:
		a.Note("%s: %s", inv.ID, failureText(inv))
	}
	return failed
}

// failureText describes why a call had no effect.
func failureText(inv wire.Invocation) string {
	why := ""
	if inv.Error != nil {
		why = ": " + command.Line(cmp.Or(inv.Error.Message, inv.Error.Code))
	}
	outcome := outcomeOf(inv.Phase, inv.Policy, inv.Decision, inv.Error, inv.FinishedAt).String()
	switch {
	case inv.Status == wire.ExecutionDenied && inv.Policy.Mode == envelope.ModeDeny:
		return "policy denies it (" + command.Line(because(inv.Policy)) + ")"
	case inv.Status == wire.ExecutionDenied, inv.Status == wire.ExecutionSkipped:
		return command.Safe(outcome)
	case inv.Status == wire.ExecutionExpired:
		return outcome + "; propose it again if it is still wanted"
	case inv.Status == wire.ExecutionUnknown:
		return "the outcome is unknown; do not repeat the call" + why
	}
	return "it failed" + why
}

// reversibleText describes whether a call can be taken back.
func reversibleText(reversible bool) string {
	if reversible {
		return "yes"
	}
	return "no: its effect cannot be reverted"
}

// showDryRun shows the preview of a call.
func showDryRun(a *command.App, inv wire.Invocation) error {
	dry := inv.DryRun
	switch {
	case dry == nil:
		return errors.New("the server ignored the dry run; check that it runs this version")
	case a.JSON:
		return a.WriteJSON(inv)
	}
	goes := "only after an operator resolves it, or never"
	if dry.GoesOutAt != nil {
		goes = dry.GoesOutAt.Local().Format(time.DateTime) + " at the earliest"
	}
	rows := [][]string{
		{"tool", dry.Call.Tool},
		{"result", dry.Result},
		{"policy", string(inv.Policy.Mode) + " (" + because(inv.Policy) + ")"},
		{"goes out", goes},
		{"reversible", reversibleText(dry.Call.Reversible)},
		{"arguments", command.Compact(json.RawMessage(dry.Call.Args))},
	}
	for _, g := range dry.Gates {
		if g.Result != "pass" {
			rows = append(rows, []string{"gate " + g.Gate, g.Result + ": " + g.Message})
		}
	}
	if err := a.Table([]string{"WHAT", "RESULT"}, rows); err != nil {
		return err
	}
	a.Note("Nothing was done. To do exactly this within the hour, add:")
	return a.Print("--plan %s\n", dry.Plan)
}
