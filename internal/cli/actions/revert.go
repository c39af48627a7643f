package actions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// progressEvery is the least time between two lines about the progress.
const progressEvery = 2 * time.Second

// Revert returns the command revert.
func Revert(a *command.App) *cobra.Command {
	r := bulkRevert{app: a}
	var f wire.RevertFilter
	var dryRun bool
	cmd := command.New(a, "revert ID...", command.Arguments(0, command.Many, "one or more action ids"), func(ctx context.Context, c *client.Client, args []string) error {
		filtered := f != (wire.RevertFilter{})
		switch {
		case len(args) == 0 && (!filtered || dryRun):
			return command.Misuse("nothing selected: give ids, or a filter such as --workflow, --session, --tool or --since")
		case len(args) > 0 && (filtered || r.apply):
			return command.Misuse("give ids or a filter, not both; ids are reverted without --apply")
		case dryRun:
			r.do = c.RevertMany
			ids, err := command.IDs(args)
			if err != nil {
				return err
			}
			return r.run(ctx, wire.RevertRequest{ActionIDs: ids})
		case len(args) > 0:
			return Each(ctx, a, args, 0, c.Revert)
		}
		r.do = c.RevertMany
		return r.run(ctx, wire.RevertRequest{Filter: &f})
	})
	command.Flag(cmd, "workflow", "id", "filter by workflow `id`", func(text string) (err error) {
		if f.WorkflowID, err = uuid.Parse(text); err != nil {
			err = errors.New("must be the id of a workflow")
		}
		return err
	})
	cmd.Flags().StringVar(&f.SessionID, "session", "", "filter by `session`")
	command.ToolFlag(cmd, &f.Tool)
	command.RangeFlags(cmd, &f.Since, &f.Until, "actions proposed")
	cmd.Flags().BoolVar(&r.apply, "apply", false, "with a filter: make the changes (default: a dry run)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with ids: show the reversal calls without proposing them")
	return cmd
}

// bulkRevert reverts the actions of a filter, in requests of a bounded size.
type bulkRevert struct {
	app   *command.App
	apply bool
	// do makes one request.
	do func(ctx context.Context, in wire.RevertRequest) (wire.RevertResult, error)
}

// revertReport is the result of a command, for scripts.
type revertReport struct {
	Command string `json:"command"`
	Applied bool   `json:"applied"`
	// Counts counts the items by result.
	Counts  map[string]int    `json:"counts"`
	Items   []wire.RevertItem `json:"items"`
	Stopped bool              `json:"stopped"`
}

func (r *bulkRevert) run(ctx context.Context, in wire.RevertRequest) error {
	report := revertReport{Command: "revert", Applied: r.apply, Counts: map[string]int{}, Items: []wire.RevertItem{}}
	err := r.work(ctx, in, &report)
	if err != nil && !errors.Is(err, context.Canceled) && r.app.JSON {
		return err // the error is the document
	}
	if shown := r.show(report, err); shown != nil {
		return shown
	}
	if err == nil && r.apply && report.Counts[wire.ResultRefused]+report.Counts[wire.ResultDenied] > 0 {
		return command.ErrAction
	}
	return err
}

// work makes request after request. When ctx ends, the current request is
// finished and no other is made; so it is when a limit of the session is
// reached.
func (r *bulkRevert) work(ctx context.Context, in wire.RevertRequest, report *revertReport) error {
	began := time.Now()
	shown := began
	in.DryRun = !r.apply
	for {
		done, err := r.do(context.WithoutCancel(ctx), in)
		if err != nil {
			return err
		}
		for _, it := range done.Items {
			report.Counts[it.Result]++
			if it.Problem != nil && it.Problem.Status == http.StatusTooManyRequests {
				report.Stopped = true
			}
		}
		report.Items = append(report.Items, done.Items...)
		if done.NextCursor == nil || report.Stopped {
			return nil
		}
		if err := ctx.Err(); err != nil {
			report.Stopped = true
			return err
		}
		if now := time.Now(); now.Sub(shown) >= progressEvery || in.Cursor == "" {
			shown = now
			r.app.Note("revert: %d checked, %d to revert, %.3g/s", len(report.Items), report.Counts[wire.ResultAccepted], float64(len(report.Items))/max(now.Sub(began).Seconds(), 0.001))
		}
		in.Cursor = *done.NextCursor
	}
}

// show shows the result of a command that may have ended with an error.
func (r *bulkRevert) show(report revertReport, err error) error {
	a := r.app
	if a.JSON {
		return a.WriteJSON(report)
	}
	if err := r.showItems(report.Items); err != nil {
		return err
	}
	counts := report.Counts
	switch {
	case err != nil || report.Stopped:
		a.Note("Stopped after %d actions: %d %s. To continue, run the command again; existing reversals are kept.", len(report.Items), counts[wire.ResultAccepted], r.verb())
	case len(report.Items) == 0:
		a.Note("No matching actions that may have had an effect.")
	case !r.apply:
		a.Note("\nNothing was changed. To revert %d, add --apply. %d have a reversal already, and %d cannot be reverted.",
			counts[wire.ResultAccepted], counts[wire.ResultKnown], counts[wire.ResultRefused]+counts[wire.ResultDenied])
	default:
		return a.Print("%d reversals proposed, %d already known, %d denied, %d refused\n", counts[wire.ResultAccepted], counts[wire.ResultKnown], counts[wire.ResultDenied], counts[wire.ResultRefused])
	}
	return nil
}

func (r *bulkRevert) verb() string {
	if r.apply {
		return "reversals proposed"
	}
	return "to revert"
}

// showItems shows the counts by tool and result, and the reasons of actions
// that cannot be reverted.
func (r *bulkRevert) showItems(items []wire.RevertItem) error {
	type kind struct{ tool, result, phase, by string }
	counts := make(map[kind]int)
	var kinds []kind
	var refused []wire.RevertItem
	for _, it := range items {
		k := kind{it.Tool, it.Result, string(it.Phase), it.ReverseTool}
		if counts[k]++; counts[k] == 1 {
			kinds = append(kinds, k)
		}
		if it.Problem != nil {
			refused = append(refused, it)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	err := command.Table(r.app, kinds, []string{"COUNT", "TOOL", "RESULT", "PHASE", "REVERTED BY"}, func(k kind) []string {
		return []string{fmt.Sprint(counts[k]), k.tool, k.result, k.phase, k.by}
	})
	if err == nil && !r.apply {
		err = r.showCalls(items)
	}
	if err != nil || len(refused) == 0 {
		return err
	}
	r.app.Note("")
	return command.Table(r.app, refused, []string{"ID", "TOOL", "RESULT", "WHY"}, func(it wire.RevertItem) []string {
		return []string{it.ActionID.String(), it.Tool, it.Result, reason(it.Problem)}
	})
}

// showCalls shows the call of every new reversal, uncut.
func (r *bulkRevert) showCalls(items []wire.RevertItem) error {
	var pairs []string
	for _, it := range items {
		if it.ReverseTool != "" {
			pairs = append(pairs, it.ActionID.String(), it.ReverseTool+" "+command.Compact(it.ReverseArgs))
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	r.app.Note("\nThe calls of the reversals:")
	return r.app.Fields(pairs...)
}

// reason describes in one line why an action is not reverted.
func reason(p *wire.Problem) string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	return p.Errors[0].Pointer + ": " + p.Errors[0].Message
}
