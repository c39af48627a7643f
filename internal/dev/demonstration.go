package dev

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

// waitFor bounds how long the demonstration waits for an action to end.
const waitFor = 15 * time.Second

// demonstration proposes actions as an agent and decides as an operator. What
// it proposes, and how each action must end, is in steps.go.
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
	return d.report(before, after), nil
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

// submit sends the proposal of a step and, unless somebody is to decide, waits
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
