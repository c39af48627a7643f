package dev

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// waitFor bounds the time that the demonstration waits for an action to end.
const waitFor = 15 * time.Second

// demonstration proposes actions as an agent and decides as an operator. The
// proposals, and the expected end of each action, are in steps.
type demonstration struct {
	agent, operator *client.Client
	// notes is the folder of the example server, and made are the ids of the
	// notes that steps wrote, by the name of the step.
	notes string
	made  map[string]string
	// runID makes the ids of this run's proposals unique.
	runID string
	steps []step
}

// Demonstrate proposes actions of all three modes through the API, in a tenant
// made for this run, and reports how they ended. The error is that of a step
// that failed; that an action ended otherwise than it should is in the report.
func (e *Environment) Demonstrate(ctx context.Context) (Report, error) {
	d := &demonstration{notes: e.notesDir, runID: strings.ToLower(rand.Text()[:8]), made: map[string]string{}, steps: steps()}
	own, err := e.newDemonstrationTenant(ctx, d.runID)
	if err != nil {
		return Report{}, fmt.Errorf("demonstration: make a tenant: %w", err)
	}
	if d.agent, err = e.Client(own.tokens.Agent); err != nil {
		return Report{}, err
	}
	if d.operator, err = e.Client(own.tokens.Operator); err != nil {
		return Report{}, err
	}
	before, err := listFiles(d.notes)
	if err != nil {
		return Report{}, err
	}
	for i := range d.steps {
		if err := d.run(ctx, &d.steps[i]); err != nil {
			return Report{}, fmt.Errorf("demonstration: %s: %w", d.steps[i].Request, err)
		}
	}
	after, err := listFiles(d.notes)
	if err != nil {
		return Report{}, err
	}
	r := d.report(before, after)
	mail, wrong, err := e.demonstrateMail(ctx, own, d.runID)
	if err != nil {
		return Report{}, fmt.Errorf("demonstration: mail: %w", err)
	}
	r.Mail, r.Problems = mail, append(r.Problems, wrong...)
	r.OK = len(r.Problems) == 0
	return r, nil
}

// run proposes the action of a step, decides, and reads the result.
func (d *demonstration) run(ctx context.Context, s *step) error {
	first, err := d.submit(ctx, s)
	if err != nil {
		return err
	}
	s.Action = first.Action
	if s.twice {
		again, err := d.submit(ctx, s)
		if err != nil {
			return err
		}
		if !again.Known || again.Action.Envelope.ActionID != s.Action.Envelope.ActionID {
			s.problems = append(s.problems, "the second answer is another action than the first")
		}
	}
	if s.decide != nil {
		if s.Action, err = s.decide(d, ctx, s.Action.Envelope.ActionID); err != nil {
			return err
		}
	}
	if s.read == nil {
		return nil
	}
	var out struct{ Structured output }
	if err := json.Unmarshal(s.Action.Envelope.Result.Output, &out); err != nil {
		s.Result = "—"
		s.problems = append(s.problems, "its result cannot be read: "+err.Error())
		return nil
	}
	d.made[s.name] = out.Structured.ID
	result, wrong := s.read(d, out.Structured)
	if s.Result = result; wrong != "" {
		s.problems = append(s.problems, wrong)
	}
	return nil
}

// submit sends the proposal of a step and, unless a person is to decide, waits
// for the end of its action.
func (d *demonstration) submit(ctx context.Context, s *step) (client.Submitted, error) {
	args := map[string]string{}
	if s.title != "" {
		args = map[string]string{"title": s.title, "body": s.body}
	}
	if s.note != "" {
		args = map[string]string{"id": d.made[s.note]}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return client.Submitted{}, err
	}
	wait := waitFor
	if s.decide != nil {
		wait = 0
	}
	sent, err := d.agent.Propose(ctx, envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: "demo-" + d.runID + "-" + s.name,
		Tool: envelope.Tool{Source: NotesSource, Name: s.tool}, Args: text,
	}, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		return client.Submitted{Action: *p.Action}, nil // denied by policy
	}
	return sent, err
}

// findProblems returns how a step ended otherwise than it should.
func (s *step) findProblems() []string {
	wrong := s.problems
	result := s.Action.Envelope.Result
	for _, part := range []struct {
		name      string
		got, want any
	}{
		{"mode", s.Action.Policy.Mode, s.want.mode}, {"phase", s.Action.Phase, s.want.phase},
		{"status", result.Status, s.want.status}, {"attempts", result.Attempts, s.want.attempts},
	} {
		if part.got != part.want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", part.name, part.got, part.want))
		}
	}
	if len(wrong) > 0 && result.Error != nil {
		wrong = append(wrong, fmt.Sprintf("its last error is %s: %s", result.Error.Code, result.Error.Message))
	}
	return wrong
}

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

// A step is one action of the demonstration: the proposal, a person's
// decision, and the expected end of the action.
type step struct {
	StepReport
	// name is the end of the external id.
	name, tool string
	// title and body are those of the note to write. note is the name of the
	// earlier step whose note the action is about.
	title, body, note string
	// twice submits the proposal twice, as an agent does that lost the answer.
	twice bool
	// decide, if not nil, decides instead of waiting for the end.
	decide func(d *demonstration, ctx context.Context, id envelope.ActionID) (wire.Action, error)
	want   ending
	// read returns a short result of the call, and its error. Nil is for an action
	// that is not sent.
	read func(d *demonstration, out output) (result, wrong string)
}

// output is the result of a tool of the example server.
type output struct {
	ID, Title, Body string
	Notes           []any
	Tries           int
}

// ending is the expected end of an action.
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

// steps returns the steps in order: later ones use notes of earlier ones.
// Deleting is denied because policy denies destructive tools by default.
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
			return d.operator.Deny(ctx, id, wire.Denial{Note: notSure})
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

// wrote returns the result of a call that wrote a note, and an error if its file
// is missing.
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
