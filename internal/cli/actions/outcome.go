package actions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// ShowOutcome shows the phases of actions and the commands to continue with.
// The error is command.ErrAction if one ended without its effect.
func ShowOutcome(a *command.App, actions []wire.Action, waited time.Duration) error {
	var failed error
	waiting, running := 0, 0
	for _, act := range actions {
		if a.JSON {
			if err := a.WriteJSON(act); err != nil {
				return err
			}
		}
		switch {
		case ended(act.Phase):
			failed = command.ErrAction
		case act.Phase == envelope.PhasePending:
			waiting++
		case act.Phase != envelope.PhaseCompleted:
			running++
		}
	}
	if a.JSON {
		return failed
	}
	if err := actionView().Show(a)(actions, nil); err != nil {
		return err
	}
	for _, act := range actions {
		explain(a, act)
	}
	switch {
	case waiting > 0 && len(actions) == 1 && voted(actions[0]) != "":
		a.Note("%s; somebody else must agree too", voted(actions[0]))
	case waiting > 0 && len(actions) == 1:
		a.Note("A person must decide: countersign approve %s", actions[0].Envelope.ActionID)
	case waiting > 0:
		a.Note("%d wait for a person: countersign list --approval required", waiting)
	case running == 1 && len(actions) == 1 && waited == 0:
		a.Note("To see the result: countersign get %s --wait", actions[0].Envelope.ActionID)
	case running > 0:
		a.Note("%d not finished: countersign watch", running)
	}
	return failed
}

// voted returns the number of approvals, where some were given and more are
// needed.
func voted(act wire.Action) string {
	d := act.Decision
	if d == nil || d.Needed < 2 || d.Given == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d people agree", d.Given, d.Needed)
}

// explain returns the reason why an action ended without its effect.
func explain(a *command.App, act wire.Action) {
	e := act.Envelope
	switch {
	case !ended(act.Phase) && e.Result.Status != envelope.StatusUnknown:
		return
	case act.Policy.Mode == envelope.ModeDeny:
		a.Note("%s: policy denies it (%s)", e.ActionID, command.Line(because(act.Policy)))
	case act.Phase == envelope.PhaseDenied, act.Phase == envelope.PhaseUndone:
		a.Note("%s: %s", e.ActionID, command.Safe(outcomeOf(act.Phase, act.Policy, act.Decision, e.Result.Error, e.Timestamps.CompletedAt).String()))
	case act.Phase == envelope.PhaseExpired:
		a.Note("%s: %s; propose it again", e.ActionID, outcomeOf(act.Phase, act.Policy, act.Decision, nil, nil))
	case e.Result.Error != nil:
		a.Note("%s: %s: %s", e.ActionID, command.Line(e.Result.Error.Code), command.Line(e.Result.Error.Message))
		if answer := command.Compact(e.Result.Output); answer != "" {
			a.Note("It answered %s", command.Line(answer))
		}
	}
}

// outcomeOf returns the state of an action for messages.
func outcomeOf(phase envelope.Phase, p wire.PolicyDecision, d *wire.Decision, failure *envelope.Failure, ended *time.Time) envelope.Outcome {
	o := envelope.Outcome{Phase: phase, Mode: p.Mode, Failure: failure, EndedAt: ended}
	if d != nil {
		o.DecidedBy, o.DecidedAt, o.Note, o.ExpiresAt = d.By, d.At, d.Note, d.ExpiresAt
	}
	return o
}

// because returns the reason of a decision in words.
func because(d wire.PolicyDecision) string {
	steps := make([]policy.Step, len(d.Trace))
	for i, step := range d.Trace {
		steps[i] = policy.Step(step)
	}
	return policy.Because(d.Mode, d.Source, steps)
}

// Refusal describes in one line why one of several requests was refused.
func Refusal(p *wire.Problem) string {
	if len(p.Errors) == 0 {
		return (&client.Problem{Problem: *p}).Error()
	}
	reasons := make([]string, len(p.Errors))
	for i, f := range p.Errors {
		at := strings.TrimPrefix(f.Pointer, "/items/")
		_, at, _ = strings.Cut(at, "/") // the number of the item in its request
		reasons[i] = strings.TrimSpace(at + " " + f.Message)
	}
	return strings.Join(reasons, "; ")
}

// showBatch shows the results of a batch of proposals: all of them to scripts,
// those that were not accepted to people.
func showBatch(a *command.App, items []wire.BatchItem) error {
	counts := map[string]int{}
	var rows [][]string
	for _, it := range items {
		if a.JSON {
			if err := a.WriteJSON(it); err != nil {
				return err
			}
		}
		counts[it.Result]++
		id, why := "", ""
		if it.ActionID != nil {
			id = it.ActionID.String()
		}
		if it.Problem != nil {
			why = Refusal(it.Problem)
		}
		if len(items) <= 20 || it.Problem != nil {
			rows = append(rows, []string{fmt.Sprint(it.Index + 1), it.Result, string(it.Phase), id, why})
		}
	}
	if a.JSON {
		return nil
	}
	if len(rows) > 0 {
		if err := a.Table([]string{"NO.", "RESULT", "PHASE", "ID", "WHY"}, rows); err != nil {
			return err
		}
	}
	return a.Print("%d accepted, %d already known, %d denied, %d refused\n",
		counts[wire.ResultAccepted], counts[wire.ResultKnown], counts[wire.ResultDenied], counts[wire.ResultRefused])
}

func toolName(t envelope.Tool) string {
	if source := cmp.Or(t.Source, t.ComposioApp); source != "" {
		return source + ":" + t.Name
	}
	return t.Name
}

// ended reports whether a phase is an end without the effect.
func ended(p envelope.Phase) bool {
	switch p {
	case envelope.PhaseDenied, envelope.PhaseExpired, envelope.PhaseFailed, envelope.PhaseSkipped, envelope.PhaseUndone:
		return true
	case envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted, envelope.PhaseUnknown:
	}
	return false
}

// Each does something to actions, one after the other, and shows those that it
// was done to. It continues after an error, and returns the first one.
func Each(ctx context.Context, a *command.App, args []string, wait time.Duration, do func(context.Context, envelope.ActionID) (wire.Action, error)) error {
	wanted, err := command.IDs(args)
	if err != nil {
		return err
	}
	var done []wire.Action
	var first error
	for _, id := range wanted {
		action, err := do(ctx, id)
		switch {
		case ctx.Err() != nil && err != nil:
			return err
		case err != nil && len(wanted) > 1:
			a.Note("%s: %v", id, err)
			fallthrough
		case err != nil:
			first = cmp.Or(first, err)
		default:
			done = append(done, action)
		}
	}
	var shown error
	if len(done) > 0 {
		shown = ShowOutcome(a, done, wait)
	}
	if first != nil {
		return first
	}
	return shown
}

// Intended drops the error that an action ended without its effect, where that
// was intended.
func Intended(err error) error {
	if err == command.ErrAction { // it is never wrapped
		return nil
	}
	return err
}
