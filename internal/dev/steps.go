package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// The tools of the example server.
const (
	toolList    = "notes.list"
	toolRead    = "notes.read"
	toolCreate  = "notes.create"
	toolPublish = "notes.publish"
	toolDelete  = "notes.delete"
)

// The titles and texts of the notes.
const (
	shoppingTitle = "Shopping list"
	shoppingBody  = "milk, bread, two countersigned letters\n"
	minutesTitle  = "Minutes of the meeting"
	minutesBody   = "We agreed to agree before anything is sent.\n"
	deniedTitle   = "Everybody gets a raise"
	undoneTitle   = "A thought too many"
)

// runAll runs the steps. Their order matters: later steps need what earlier
// ones made.
func (d *demonstration) runAll(ctx context.Context) error {
	d.list(ctx)
	shopping := d.createApproved(ctx)
	minutes := d.createTwice(ctx)
	d.read(ctx, shopping)
	d.publish(ctx, minutes)
	d.createDenied(ctx)
	d.createUndone(ctx)
	d.remove(ctx, shopping)
	return d.err
}

func (d *demonstration) list(ctx context.Context) {
	s := d.submit(ctx, waitFor, "list", toolList, map[string]string{})
	a := d.add(step{request: "list the notes", action: s.Action, want: sentAfter(envelope.ModeAllow, 1)})
	found, err := output[struct{ Notes []any }](s.Action)
	a.setResult(err, "found %d", len(found.Notes))
}

// createApproved creates a note with an operator's approval.
func (d *demonstration) createApproved(ctx context.Context) (id string) {
	s := d.submit(ctx, 0, "shopping", toolCreate, map[string]string{"title": shoppingTitle, "body": shoppingBody})
	return d.approve(ctx, s, step{request: "write the shopping list", decision: "approved"}, "")
}

// createTwice submits the same proposal twice, as an agent does that lost the
// first answer.
func (d *demonstration) createTwice(ctx context.Context) (id string) {
	args := map[string]string{"title": minutesTitle, "body": minutesBody}
	first := d.submit(ctx, 0, "minutes", toolCreate, args)
	again := d.submit(ctx, 0, "minutes", toolCreate, args)
	a := step{request: "write the minutes, sent twice", decision: "approved"}
	if !again.Known || again.Action.Envelope.ActionID != first.Action.Envelope.ActionID {
		a.problems = append(a.problems, "the second answer is another action than the first")
	}
	return d.approve(ctx, first, a, ", once")
}

func (d *demonstration) approve(ctx context.Context, s client.Submitted, a step, how string) (id string) {
	a.want = sentAfter(envelope.ModeRequireApproval, 1)
	a.action = d.decide("approve", func() (wire.Action, error) {
		return d.operator.Approve(ctx, s.Action.Envelope.ActionID, wire.Approval{Note: "fine"}, waitFor)
	})
	made, err := output[struct{ ID string }](a.action)
	on := d.add(a)
	on.setResult(err, "wrote %s%s", short(made.ID), how)
	if _, statErr := os.Stat(filepath.Join(d.notes, made.ID+".md")); err == nil && statErr != nil {
		on.problems = append(on.problems, "its file is not on disk")
	}
	return made.ID
}

func (d *demonstration) read(ctx context.Context, id string) {
	s := d.submit(ctx, waitFor, "read", toolRead, map[string]string{"id": id})
	a := d.add(step{request: "read the shopping list", action: s.Action, want: sentAfter(envelope.ModeAllow, 1)})
	got, err := output[struct{ Title, Body string }](s.Action)
	a.setResult(err, "%q", got.Title)
	if err == nil && (got.Title != shoppingTitle || got.Body != shoppingBody) {
		a.problems = append(a.problems, "what was read is not what was written")
	}
}

// publish calls a tool that fails at the first attempt.
func (d *demonstration) publish(ctx context.Context, id string) {
	s := d.submit(ctx, waitFor, "publish", toolPublish, map[string]string{"id": id})
	a := d.add(step{request: "publish the minutes", action: s.Action, want: sentAfter(envelope.ModeAllow, 2)})
	out, err := output[struct{ Tries int }](s.Action)
	a.setResult(err, "the press was busy once")
	if err == nil && out.Tries != 2 {
		a.problems = append(a.problems, fmt.Sprintf("the server counts %d tries, want 2", out.Tries))
	}
}

func (d *demonstration) createDenied(ctx context.Context) {
	const note = "not without the finance team"
	s := d.submit(ctx, 0, "raise", toolCreate, map[string]string{"title": deniedTitle, "body": "All of it.\n"})
	action := d.decide("deny", func() (wire.Action, error) { return d.operator.Deny(ctx, s.Action.Envelope.ActionID, note) })
	d.add(step{
		request: "write about a raise", decision: "denied", action: action, result: strconv.Quote(note),
		want: ending{envelope.ModeRequireApproval, envelope.PhaseDenied, envelope.StatusSkipped, 0},
	})
}

func (d *demonstration) createUndone(ctx context.Context) {
	s := d.submit(ctx, 0, "thought", toolCreate, map[string]string{"title": undoneTitle, "body": "Never mind.\n"})
	action := d.decide("undo", func() (wire.Action, error) { return d.agent.Undo(ctx, s.Action.Envelope.ActionID) })
	d.add(step{
		request: "write down a thought", decision: "undone by the agent", action: action, result: "nothing was sent",
		want: ending{envelope.ModeRequireApproval, envelope.PhaseUndone, envelope.StatusSkipped, 0},
	})
}

// remove proposes a destructive action, which policy denies by default.
func (d *demonstration) remove(ctx context.Context, id string) {
	s := d.submit(ctx, 0, "delete", toolDelete, map[string]string{"id": id})
	d.add(step{
		request: "delete the shopping list", action: s.Action, result: "nothing was sent",
		want: ending{envelope.ModeDeny, envelope.PhaseDenied, envelope.StatusSkipped, 0},
	})
}

func sentAfter(mode envelope.Mode, attempts int) ending {
	return ending{mode, envelope.PhaseCompleted, envelope.StatusSent, attempts}
}

// setResult sets the result, or that it cannot be read.
func (a *step) setResult(err error, format string, args ...any) {
	if err != nil {
		a.result = "—"
		a.problems = append(a.problems, "its result cannot be read: "+err.Error())
		return
	}
	a.result = fmt.Sprintf(format, args...)
}

// short returns the beginning of a note's file name.
func short(id string) string {
	const enough = 8
	if len(id) <= enough {
		return id + ".md"
	}
	return id[:enough] + "….md"
}
