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

// patience is how long the demonstration waits for an envelope to end.
const patience = 15 * time.Second

// demonstration sends envelopes as an agent and decides as an operator. What
// it asks for, and how each must end, stands in story.go.
type demonstration struct {
	agent, operator, admin *client.Client
	notes                  string
	// run makes the names of this run's envelopes its own.
	run  string
	acts []act
}

// act is one thing that the agent asked for, and what became of it.
type act struct {
	asked string
	// person is what somebody did about it.
	person string
	action client.Action
	want   ending
	// result says in a few words what came of it.
	result string
	// wrong lists what is not as it should be, beside the ending.
	wrong []string
}

// ending is how an envelope must end.
type ending struct {
	mode     envelope.Mode
	phase    envelope.Phase
	status   envelope.Status
	attempts int
}

// Demonstrate sends envelopes through all three modes over the API, and
// returns what became of them. The error says that it could not go on; that
// something ended as it should not is in the report.
func (h *House) Demonstrate(ctx context.Context) (Report, error) {
	d := &demonstration{notes: h.notes.dir, run: strings.ToLower(rand.Text()[:8])}
	for _, holder := range []struct {
		of    **client.Client
		token string
	}{{&d.agent, h.tokens.Agent}, {&d.operator, h.tokens.Operator}, {&d.admin, h.tokens.Admin}} {
		c, err := h.Client(holder.token)
		if err != nil {
			return Report{}, err
		}
		*holder.of = c
	}
	before, err := listFiles(d.notes)
	if err != nil {
		return Report{}, err
	}
	if err := d.tell(ctx); err != nil {
		return Report{}, fmt.Errorf("demonstration: %w", err)
	}
	after, err := listFiles(d.notes)
	if err != nil {
		return Report{}, err
	}
	return d.report(before, after), nil
}

// proposal is what the agent writes.
type proposal struct {
	Type       string          `json:"type"`
	ExternalID string          `json:"external_id"`
	Tool       envelope.Tool   `json:"tool"`
	Args       json.RawMessage `json:"args"`
}

func (d *demonstration) propose(name, tool string, args map[string]string) (json.RawMessage, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(proposal{
		Type: envelope.TypeExec, ExternalID: "demo-" + d.run + "-" + name,
		Tool: envelope.Tool{Source: NotesSource, Name: tool}, Args: text,
	})
}

// submit sends a proposal, and waits for its end if patient.
func (d *demonstration) submit(ctx context.Context, wait time.Duration, name, tool string, args map[string]string) (client.Submitted, error) {
	text, err := d.propose(name, tool, args)
	if err != nil {
		return client.Submitted{}, err
	}
	s, err := d.agent.Submit(ctx, text, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		return client.Submitted{Action: *p.Action}, nil // denied by policy, and on record
	}
	if err != nil {
		return s, fmt.Errorf("submit %s: %w", tool, err)
	}
	return s, nil
}

// add puts an act on record as it stands now.
func (d *demonstration) add(a act) *act {
	d.acts = append(d.acts, a)
	return &d.acts[len(d.acts)-1]
}

// output is the structured result of a tool call.
func output[T any](a client.Action) (T, error) {
	var out struct {
		Structured T `json:"structured"`
	}
	if len(a.Envelope.Result.Output) == 0 {
		return out.Structured, errors.New("the call left no result")
	}
	err := json.Unmarshal(a.Envelope.Result.Output, &out)
	return out.Structured, err
}

// differs says how an act ended otherwise than it should.
func (a *act) differs() []string {
	got := ending{a.action.Policy.Mode, a.action.Phase, a.action.Envelope.Result.Status, a.action.Envelope.Result.Attempts}
	wrong := a.wrong
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
