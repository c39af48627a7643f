package dev

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// waitFor bounds how long the demonstration waits for an action to end.
const waitFor = 15 * time.Second

// demonstration proposes actions as an agent and decides as an operator. What
// it proposes, and how each action must end, is in steps.go.
type demonstration struct {
	agent, operator *client.Client
	notes           string
	// runID makes the ids of this run's proposals unique.
	runID string
	steps []step
	// err is the first error of a step; later steps do nothing.
	err error
}

// A step is one action of the demonstration.
type step struct {
	// request says in a few words what the agent asked for.
	request string
	// decision is what a person decided, if asked.
	decision string
	action   wire.Action
	want     ending
	// result says in a few words what the call returned.
	result string
	// problems are what is wrong beside the ending.
	problems []string
}

// ending is how an action must end.
type ending struct {
	mode     envelope.Mode
	phase    envelope.Phase
	status   envelope.Status
	attempts int
}

// Demonstrate proposes actions of all three modes through the API, in a tenant
// made for this run, and reports how they ended. The error is that of a step
// that failed; that an action ended otherwise than it should is in the report.
func (e *Environment) Demonstrate(ctx context.Context) (Report, error) {
	d := &demonstration{notes: e.notes.dir, runID: strings.ToLower(rand.Text()[:8])}
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
	if err := d.runAll(ctx); err != nil {
		return Report{}, fmt.Errorf("demonstration: %w", err)
	}
	after, err := listFiles(d.notes)
	if err != nil {
		return Report{}, err
	}
	return d.report(before, after), nil
}

// submit sends a proposal and waits up to wait for the end of its action. After
// an error it does nothing.
func (d *demonstration) submit(ctx context.Context, wait time.Duration, name, tool string, args map[string]string) client.Submitted {
	text, err := json.Marshal(args)
	if d.err = cmp.Or(d.err, err); d.err != nil {
		return client.Submitted{}
	}
	s, err := d.agent.Propose(ctx, envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: "demo-" + d.runID + "-" + name,
		Tool: envelope.Tool{Source: NotesSource, Name: tool}, Args: text,
	}, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		return client.Submitted{Action: *p.Action} // denied by policy
	}
	if err != nil {
		d.err = fmt.Errorf("submit %s: %w", tool, err)
	}
	return s
}

// decide makes a decision. After an error it does nothing.
func (d *demonstration) decide(what string, do func() (wire.Action, error)) wire.Action {
	if d.err != nil {
		return wire.Action{}
	}
	action, err := do()
	if err != nil {
		d.err = fmt.Errorf("%s: %w", what, err)
	}
	return action
}

// add records a step.
func (d *demonstration) add(a step) *step {
	d.steps = append(d.steps, a)
	return &d.steps[len(d.steps)-1]
}

// output returns the structured result of a tool call.
func output[T any](a wire.Action) (T, error) {
	var out struct {
		Structured T `json:"structured"`
	}
	if len(a.Envelope.Result.Output) == 0 {
		return out.Structured, errors.New("the call left no result")
	}
	err := json.Unmarshal(a.Envelope.Result.Output, &out)
	return out.Structured, err
}

// findProblems returns how a step ended otherwise than it should.
func (a *step) findProblems() []string {
	got := ending{a.action.Policy.Mode, a.action.Phase, a.action.Envelope.Result.Status, a.action.Envelope.Result.Attempts}
	wrong := a.problems
	check := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	check("mode", got.mode, a.want.mode)
	check("phase", got.phase, a.want.phase)
	check("status", got.status, a.want.status)
	check("attempts", got.attempts, a.want.attempts)
	if failure := a.action.Envelope.Result.Error; len(wrong) > 0 && failure != nil {
		wrong = append(wrong, fmt.Sprintf("its last error is %s: %s", failure.Code, failure.Message))
	}
	return wrong
}
