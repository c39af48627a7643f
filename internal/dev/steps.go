package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
	if err := d.list(ctx); err != nil {
		return err
	}
	shopping, err := d.createApproved(ctx)
	if err != nil {
		return err
	}
	minutes, err := d.createTwice(ctx)
	if err != nil {
		return err
	}
	for _, next := range []func() error{
		func() error { return d.read(ctx, shopping) },
		func() error { return d.publish(ctx, minutes) },
		func() error { return d.createDenied(ctx) },
		func() error { return d.createUndone(ctx) },
		func() error { return d.remove(ctx, shopping) },
	} {
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

func (d *demonstration) list(ctx context.Context) error {
	s, err := d.submit(ctx, waitFor, "list", toolList, map[string]string{})
	if err != nil {
		return err
	}
	a := d.add(step{request: "list the notes", action: s.Action, want: sentAfter(envelope.ModeAllow, 1)})
	found, err := output[struct{ Notes []any }](s.Action)
	a.setResult(err, "found %d", len(found.Notes))
	return nil
}

// createApproved creates a note with an operator's approval.
func (d *demonstration) createApproved(ctx context.Context) (id string, err error) {
	s, err := d.submit(ctx, 0, "shopping", toolCreate, map[string]string{"title": shoppingTitle, "body": shoppingBody})
	if err != nil {
		return "", err
	}
	return d.approve(ctx, s, step{request: "write the shopping list", decision: "approved"}, "")
}

// createTwice submits the same proposal twice, as an agent does that lost the
// first answer.
func (d *demonstration) createTwice(ctx context.Context) (id string, err error) {
	args := map[string]string{"title": minutesTitle, "body": minutesBody}
	first, err := d.submit(ctx, 0, "minutes", toolCreate, args)
	if err != nil {
		return "", err
	}
	again, err := d.submit(ctx, 0, "minutes", toolCreate, args)
	if err != nil {
		return "", err
	}
	a := step{request: "write the minutes, sent twice", decision: "approved"}
	if !again.Known || again.Action.Envelope.ActionID != first.Action.Envelope.ActionID {
		a.problems = append(a.problems, "the second answer is another action than the first")
	}
	return d.approve(ctx, first, a, ", once")
}

func (d *demonstration) approve(ctx context.Context, s client.Submitted, a step, how string) (id string, err error) {
	a.action, err = d.operator.Approve(ctx, s.Action.Envelope.ActionID, wire.Approval{Note: "fine"}, waitFor)
	if err != nil {
		return "", fmt.Errorf("approve: %w", err)
	}
	a.want = sentAfter(envelope.ModeRequireApproval, 1)
	made, err := output[struct{ ID string }](a.action)
	on := d.add(a)
	on.setResult(err, "wrote %s%s", short(made.ID), how)
	if _, statErr := os.Stat(filepath.Join(d.notes, made.ID+".md")); err == nil && statErr != nil {
		on.problems = append(on.problems, "its file is not on disk")
	}
	return made.ID, nil
}

func (d *demonstration) read(ctx context.Context, id string) error {
	s, err := d.submit(ctx, waitFor, "read", toolRead, map[string]string{"id": id})
	if err != nil {
		return err
	}
	a := d.add(step{request: "read the shopping list", action: s.Action, want: sentAfter(envelope.ModeAllow, 1)})
	got, err := output[struct{ Title, Body string }](s.Action)
	a.setResult(err, "%q", got.Title)
	if err == nil && (got.Title != shoppingTitle || got.Body != shoppingBody) {
		a.problems = append(a.problems, "what was read is not what was written")
	}
	return nil
}

// publish calls a tool that fails at the first attempt.
func (d *demonstration) publish(ctx context.Context, id string) error {
	s, err := d.submit(ctx, waitFor, "publish", toolPublish, map[string]string{"id": id})
	if err != nil {
		return err
	}
	a := d.add(step{request: "publish the minutes", action: s.Action, want: sentAfter(envelope.ModeAllow, 2)})
	out, err := output[struct{ Tries int }](s.Action)
	a.setResult(err, "the press was busy once")
	if err == nil && out.Tries != 2 {
		a.problems = append(a.problems, fmt.Sprintf("the server counts %d tries, want 2", out.Tries))
	}
	return nil
}

func (d *demonstration) createDenied(ctx context.Context) error {
	s, err := d.submit(ctx, 0, "raise", toolCreate, map[string]string{"title": deniedTitle, "body": "All of it.\n"})
	if err != nil {
		return err
	}
	action, err := d.operator.Deny(ctx, s.Action.Envelope.ActionID, "not without the board")
	if err != nil {
		return fmt.Errorf("deny: %w", err)
	}
	d.add(step{
		request: "write about a raise", decision: "denied", action: action, result: `"not without the board"`,
		want: ending{envelope.ModeRequireApproval, envelope.PhaseDenied, envelope.StatusSkipped, 0},
	})
	return nil
}

func (d *demonstration) createUndone(ctx context.Context) error {
	s, err := d.submit(ctx, 0, "thought", toolCreate, map[string]string{"title": undoneTitle, "body": "Never mind.\n"})
	if err != nil {
		return err
	}
	action, err := d.agent.Undo(ctx, s.Action.Envelope.ActionID)
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	d.add(step{
		request: "write down a thought", decision: "undone by the agent", action: action, result: "nothing was sent",
		want: ending{envelope.ModeRequireApproval, envelope.PhaseUndone, envelope.StatusSkipped, 0},
	})
	return nil
}

// remove proposes a destructive action, which policy denies by default.
func (d *demonstration) remove(ctx context.Context, id string) error {
	s, err := d.submit(ctx, 0, "delete", toolDelete, map[string]string{"id": id})
	if err != nil {
		return err
	}
	d.add(step{
		request: "delete the shopping list", action: s.Action, result: "nothing was sent",
		want: ending{envelope.ModeDeny, envelope.PhaseDenied, envelope.StatusSkipped, 0},
	})
	return nil
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
