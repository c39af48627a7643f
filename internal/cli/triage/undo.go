package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func runs(a *command.App) *cobra.Command {
	var limit int
	var cursor string
	view := command.View[wire.TriageRun]{
		Empty: "No runs.", Head: []string{"RUN", "KIND", "STARTED", "ENDED", "READ", "DECIDED", "PROPOSED", "ERROR"},
		Row: func(r wire.TriageRun) []string {
			return []string{r.ID.String(), r.Kind, command.Local(&r.StartedAt), command.Local(r.EndedAt), fmt.Sprint(r.Read), fmt.Sprint(r.Decided), fmt.Sprint(r.Proposed), r.Error}
		},
	}
	cmd := command.New(a, "runs ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return view.ShowPage(a)(c.TriageRuns(ctx, args[0], limit, cursor))
	})
	command.PageFlags(cmd, &limit, &cursor)
	return cmd
}

func undo(a *command.App) *cobra.Command {
	var f wire.TriageUndoFilter
	u := undoing{app: a}
	cmd := command.New(a, "undo [ACTION...]", command.Arguments(0, command.Many, "ids of actions"), func(ctx context.Context, c *client.Client, args []string) error {
		u.client = c
		filtered := f != (wire.TriageUndoFilter{})
		switch {
		case len(args) == 0 && !filtered:
			return command.Misuse("nothing selected: give ids of actions, or --account, --run, --session, --since or --until")
		case len(args) > 0 && filtered:
			return command.Misuse("give ids of actions or a filter, not both")
		case !filtered:
			ids, err := command.IDs(args)
			if err != nil {
				return err
			}
			return u.run(ctx, wire.TriageUndoRequest{ActionIDs: ids})
		}
		return u.run(ctx, wire.TriageUndoRequest{Filter: &f})
	})
	cmd.Flags().StringVar(&f.Account, "account", "", "filter by mail `account`")
	command.Flag(cmd, "run", "id", "filter by run `id`, as \"triage runs\" shows it", func(text string) (err error) {
		if f.RunID, err = uuid.Parse(text); err != nil {
			err = errors.New("must be the id of a run")
		}
		return err
	})
	cmd.Flags().StringVar(&f.SessionID, "session", "", "filter by `session`")
	command.RangeFlags(cmd, &f.Since, &f.Until, "what was done")
	cmd.Flags().BoolVar(&u.dryRun, "dry-run", false, "show what would be undone, and change nothing")
	cmd.Flags().DurationVar(&u.wait, "wait", 10*time.Minute, "maximum `duration` to wait for the mailbox; 0 does not wait")
	return cmd
}

// The outcomes of an undo.
const (
	outcomeRestored  = "restored"
	outcomeWithdrawn = "withdrawn"
	outcomeLeft      = "left"
	outcomePending   = "pending"
	outcomeFailed    = "failed"
	outcomeRefused   = "refused"
	outcomeDenied    = "denied"
	// The outcomes of a dry run.
	outcomeWould         = "would_restore"
	outcomeWouldWithdraw = "would_withdraw"
	outcomeWouldLeave    = "would_leave"
)

// undone is the outcome of the undo of one action.
type undone struct {
	wire.TriageUndoItem
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
}

// undoReport is the result of the command, for scripts.
type undoReport struct {
	Command string         `json:"command"`
	DryRun  bool           `json:"dry_run"`
	Counts  map[string]int `json:"counts"`
	Items   []undone       `json:"items"`
	// Stopped reports whether the command ended before it saw all outcomes.
	Stopped bool `json:"stopped"`
}

// undoing is one call of the command.
type undoing struct {
	app    *command.App
	client *client.Client
	dryRun bool
	wait   time.Duration
	until  time.Time
	report undoReport
	at     map[envelope.ActionID]int // in report.Items
}

func (u *undoing) run(ctx context.Context, in wire.TriageUndoRequest) error {
	u.report = undoReport{Command: "triage undo", DryRun: u.dryRun, Counts: map[string]int{}, Items: []undone{}}
	u.at, u.until = map[envelope.ActionID]int{}, time.Now().Add(u.wait)
	err := u.undo(ctx, in)
	if err != nil && ctx.Err() == nil && (u.app.JSON || len(u.report.Items) == 0) {
		return err
	}
	u.report.Stopped = err != nil
	for _, it := range u.report.Items {
		u.report.Counts[it.Outcome]++
	}
	if shown := u.show(); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	for _, it := range u.report.Items {
		switch it.Outcome {
		case outcomeRestored, outcomeWithdrawn, outcomeWould, outcomeWouldWithdraw, outcomeWouldLeave, outcomePending:
		default:
			return command.ErrAction
		}
	}
	return nil
}

// undo requests an undo, waits for the reversals, and repeats that for the actions
// that had to wait for them. Each part of a filter is finished before the next, so
// that of a message the newest action is undone first.
func (u *undoing) undo(ctx context.Context, in wire.TriageUndoRequest) error {
	in.DryRun = u.dryRun
	for most := 100; ; {
		part := in
		if in.Filter == nil && len(in.ActionIDs) > most {
			part.ActionIDs = in.ActionIDs[:most]
		}
		next, err := u.part(ctx, part)
		switch {
		case err != nil:
			return err
		case in.Filter == nil && len(in.ActionIDs) > most:
			in.ActionIDs = in.ActionIDs[most:]
		case next == nil:
			return nil
		default:
			in.Cursor = *next
		}
	}
}

func (u *undoing) part(ctx context.Context, in wire.TriageUndoRequest) (next *string, err error) {
	result, err := u.request(ctx, in)
	if err == nil && u.dryRun {
		err = u.look(ctx, result.Items)
	}
	if err != nil || u.dryRun {
		return result.NextCursor, err
	}
	for {
		if err := u.await(ctx, result.Items); err != nil {
			return nil, err
		}
		var again []envelope.ActionID
		for _, it := range result.Items {
			if it.Result == wire.ResultWaiting {
				again = append(again, it.ActionID)
			}
		}
		if len(again) == 0 || u.wait <= 0 {
			return result.NextCursor, nil
		}
		if len(again) == len(result.Items) { // for reversals of another request
			if err := u.pause(ctx); err != nil {
				return nil, err
			}
		}
		cursor := result.NextCursor
		if result, err = u.request(ctx, wire.TriageUndoRequest{ActionIDs: again}); err != nil {
			return nil, err
		}
		result.NextCursor = cursor
	}
}

// request makes one request, which is finished when ctx ends, and notes its results.
func (u *undoing) request(ctx context.Context, in wire.TriageUndoRequest) (wire.TriageUndoResult, error) {
	if err := ctx.Err(); err != nil {
		return wire.TriageUndoResult{}, err
	}
	result, err := u.client.UndoTriage(context.WithoutCancel(ctx), in)
	for _, it := range result.Items {
		row := undone{TriageUndoItem: it, Outcome: map[string]string{
			wire.ResultRefused: outcomeRefused, wire.ResultDenied: outcomeDenied, wire.ResultWithdrawn: outcomeWithdrawn,
		}[it.Result]}
		switch {
		case u.dryRun && it.Result == wire.ResultWithdrawn:
			row.Outcome = outcomeWouldWithdraw
		case row.Outcome != "":
		case u.dryRun && it.Result != wire.ResultKnown:
			row.Outcome = outcomeWould
		default:
			row.Outcome = outcomePending
		}
		if u.dryRun && it.Result == wire.ResultKnown && it.Phase == envelope.PhaseCompleted {
			row.Outcome = outcomeRestored
		}
		if it.Problem != nil {
			row.Why = problem(it.Problem)
		}
		if at, ok := u.at[it.ActionID]; ok {
			u.report.Items[at] = row
		} else {
			u.at[it.ActionID] = len(u.report.Items)
			u.report.Items = append(u.report.Items, row)
		}
	}
	return result, err
}

// looks bounds the messages of a dry run that are looked at at a time.
const looks = 8

// look finds out which messages of a dry run were changed since, and would be left
// as they are. It reads the mailbox as their source does for a reversal.
func (u *undoing) look(ctx context.Context, items []wire.TriageUndoItem) error {
	if u.wait <= 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(looks)
	for _, it := range items {
		row := &u.report.Items[u.at[it.ActionID]]
		if source, _, ok := strings.Cut(it.ReverseTool, ":"); ok && row.Outcome == outcomeWould && len(it.ReverseArgs) > 0 {
			group.Go(func() error { return u.lookAt(ctx, row, source+":message.state", it.ReverseArgs) })
		}
	}
	return group.Wait()
}

// lookAt looks at the message of a reversal. Where that fails, the row has the reason.
func (u *undoing) lookAt(ctx context.Context, row *undone, tool string, args json.RawMessage) error {
	wait := envelope.Duration(min(maxLook, time.Until(u.until)))
	inv, err := u.client.Invoke(ctx, tool, wire.Call{Inputs: args, Wait: &wait})
	var seen struct{ Reversal, Differs string }
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case inv.Error != nil && inv.Error.Code == "not_found":
		row.Outcome, row.Why = outcomeWouldLeave, inv.Error.Code+": "+inv.Error.Message
	case err != nil:
		row.Why = "the mailbox was not read: " + err.Error()
	case inv.Status != wire.ExecutionSuccess || json.Unmarshal(inv.Outputs, &seen) != nil || seen.Reversal == "":
		row.Why = "the mailbox was not read: the call is " + string(inv.Status)
	case seen.Reversal == "refused":
		row.Outcome, row.Why = outcomeWouldLeave, "its "+seen.Differs+" was changed since"
	case seen.Reversal == "done":
		row.Outcome = outcomeRestored
	}
	return nil
}

// maxLook bounds the time to wait for one message of a dry run.
const maxLook = 30 * time.Second

// pause waits before the next look.
func (u *undoing) pause(ctx context.Context) error {
	if time.Now().After(u.until) {
		return u.late()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookEvery):
		return nil
	}
}

func (u *undoing) late() error {
	return fmt.Errorf("the undo has not ended within %s; run the command again to continue", u.wait)
}

// await waits until the reversals of results have ended, or the actions that were
// being sent.
func (u *undoing) await(ctx context.Context, items []wire.TriageUndoItem) error {
	if u.wait <= 0 {
		return nil
	}
	for _, it := range items {
		row := &u.report.Items[u.at[it.ActionID]]
		switch {
		case it.Result == wire.ResultWaiting && it.Phase == envelope.PhaseExecuting:
			if _, _, err := u.client.Wait(ctx, it.ActionID, time.Until(u.until)); err != nil {
				return err
			}
		case row.Outcome == outcomePending && it.RevertedBy != nil:
			ended, finished, err := u.client.Wait(ctx, *it.RevertedBy, time.Until(u.until))
			if err != nil {
				return err
			}
			if row.Phase = ended.Phase; !finished {
				row.Why = "its reversal has not ended"
				return u.late()
			}
			row.Outcome, row.Why = outcome(ended)
		}
	}
	return nil
}

// outcome returns what became of a message, by the end of its reversal.
func outcome(reversal wire.Action) (what, why string) {
	failure := reversal.Envelope.Result.Error
	if failure != nil {
		why = strings.TrimSpace(failure.Code + ": " + failure.Message)
	}
	switch {
	case reversal.Phase == envelope.PhaseCompleted:
		return outcomeRestored, ""
	case failure != nil && (failure.Code == "changed_since" || failure.Code == "not_found"):
		return outcomeLeft, why
	case why == "":
		why = "its reversal is " + string(reversal.Phase)
	}
	return outcomeFailed, why
}

func problem(p *wire.Problem) string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	return p.Errors[0].Message
}

// show shows the outcomes.
func (u *undoing) show() error {
	a, counts := u.app, u.report.Counts
	if a.JSON {
		return a.WriteJSON(u.report)
	}
	if len(u.report.Items) == 0 {
		a.Note("Triage did nothing that matches.")
		return nil
	}
	err := command.View[undone]{
		Head: []string{"ACTION", "ACCOUNT", "TOOL", "OUTCOME", "WHY"}, Whole: true,
		Row: func(it undone) []string {
			return []string{it.ActionID.String(), it.Account, it.Tool, it.Outcome, it.Why}
		},
	}.Show(a)(u.report.Items, nil)
	if err != nil {
		return err
	}
	if u.dryRun {
		a.Note("\nNothing was changed. %d would be undone, %d would be left because the message was changed since, %d cannot be undone.",
			counts[outcomeWould]+counts[outcomeWouldWithdraw], counts[outcomeWouldLeave], counts[outcomeRefused]+counts[outcomeDenied])
		return nil
	}
	if u.report.Stopped {
		a.Note("\nStopped; run the command again to continue.")
	}
	a.Note("\n%d restored, %d withdrawn before they were sent, %d left because the message was changed since, %d not undone.",
		counts[outcomeRestored], counts[outcomeWithdrawn], counts[outcomeLeft], len(u.report.Items)-counts[outcomeRestored]-counts[outcomeWithdrawn]-counts[outcomeLeft])
	return nil
}
