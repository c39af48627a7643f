package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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

// A step is one action of the demonstration: what the agent proposes, what a
// person decides, and how the action must end.
type step struct {
	StepReport
	// name is the end of the external id.
	name, tool string
	// title and body are of the note to write. note is the name of the earlier
	// step whose note the action is about.
	title, body, note string
	// twice submits the proposal twice, as an agent does that lost the answer.
	twice bool
	// decide, if not nil, decides instead of waiting for the end.
	decide func(d *demonstration, ctx context.Context, id envelope.ActionID) (wire.Action, error)
	want   ending
	// read returns what the call returned in a few words, and what is wrong with
	// it. Nil is for an action that is not sent.
	read func(d *demonstration, out output) (result, wrong string)
}

// output is what a tool of the example server returned.
type output struct {
	ID, Title, Body string
	Notes           []any
	Tries           int
}

// ending is how an action must end.
type ending struct {
	mode     envelope.Mode
	phase    envelope.Phase
	status   envelope.Status
	attempts int
}

func sentAfter(mode envelope.Mode, attempts int) ending {
	return ending{mode, envelope.PhaseCompleted, envelope.StatusSent, attempts}
}

func notSent(mode envelope.Mode, phase envelope.Phase) ending {
	return ending{mode, phase, envelope.StatusSkipped, 0}
}

// steps returns the steps in their order: later ones need what earlier ones
// made. Deleting is denied because policy denies destructive tools by default.
func steps() []step {
	const notSure = "not without the finance team"
	return []step{{
		StepReport: StepReport{Request: "list the notes"}, name: "list", tool: toolList, want: sentAfter(envelope.ModeAllow, 1),
		read: func(_ *demonstration, out output) (string, string) {
			return fmt.Sprintf("found %d", len(out.Notes)), ""
		},
	}, {
		StepReport: StepReport{Request: "write the shopping list", Decision: "approved"}, name: "shopping",
		tool: toolCreate, title: shoppingTitle, body: shoppingBody, decide: approve, want: sentAfter(envelope.ModeRequireApproval, 1),
		read: func(d *demonstration, out output) (string, string) { return d.wrote(out.ID, "") },
	}, {
		StepReport: StepReport{Request: "write the minutes, sent twice", Decision: "approved"}, name: "minutes", twice: true,
		tool: toolCreate, title: minutesTitle, body: minutesBody, decide: approve, want: sentAfter(envelope.ModeRequireApproval, 1),
		read: func(d *demonstration, out output) (string, string) { return d.wrote(out.ID, ", once") },
	}, {
		StepReport: StepReport{Request: "read the shopping list"}, name: "read", tool: toolRead, note: "shopping", want: sentAfter(envelope.ModeAllow, 1),
		read: func(_ *demonstration, out output) (result, wrong string) {
			if out.Title != shoppingTitle || out.Body != shoppingBody {
				wrong = "what was read is not what was written"
			}
			return fmt.Sprintf("%q", out.Title), wrong
		},
	}, {
		StepReport: StepReport{Request: "publish the minutes"}, name: "publish", tool: toolPublish, note: "minutes", want: sentAfter(envelope.ModeAllow, 2),
		read: func(_ *demonstration, out output) (result, wrong string) {
			if out.Tries != 2 {
				wrong = fmt.Sprintf("the server counts %d tries, want 2", out.Tries)
			}
			return "the press was busy once", wrong
		},
	}, {
		StepReport: StepReport{Request: "write about a raise", Decision: "denied", Result: fmt.Sprintf("%q", notSure)}, name: "raise",
		tool: toolCreate, title: deniedTitle, body: "All of it.\n", want: notSent(envelope.ModeRequireApproval, envelope.PhaseDenied),
		decide: func(d *demonstration, ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return d.operator.Deny(ctx, id, notSure)
		},
	}, {
		StepReport: StepReport{Request: "write down a thought", Decision: "undone by the agent", Result: "nothing was sent"}, name: "thought",
		tool: toolCreate, title: undoneTitle, body: "Never mind.\n", want: notSent(envelope.ModeRequireApproval, envelope.PhaseUndone),
		decide: func(d *demonstration, ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return d.agent.Undo(ctx, id)
		},
	}, {
		StepReport: StepReport{Request: "delete the shopping list", Result: "nothing was sent"}, name: "delete", tool: toolDelete, note: "shopping",
		want: notSent(envelope.ModeDeny, envelope.PhaseDenied),
	}}
}

func approve(d *demonstration, ctx context.Context, id envelope.ActionID) (wire.Action, error) {
	return d.operator.Approve(ctx, id, wire.Approval{Note: "fine"}, waitFor)
}

// wrote returns the result of a call that wrote a note, and what is wrong if its
// file is missing.
func (d *demonstration) wrote(id, how string) (result, wrong string) {
	if _, err := os.Stat(filepath.Join(d.notes, id+".md")); err != nil {
		wrong = "its file is not on disk"
	}
	return "wrote " + short(id) + how, wrong
}

// short returns the beginning of a note's file name.
func short(id string) string {
	const enough = 8
	if len(id) <= enough {
		return id + ".md"
	}
	return id[:enough] + "….md"
}
