package dev_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// propose is the example of README.md.
func propose(ctx context.Context, url, token string) (envelope.ActionID, error) {
	c, err := client.New(url, token, client.Config{})
	if err != nil {
		return envelope.ActionID{}, err
	}
	sent, err := c.Propose(ctx, envelope.Proposal{
		Type:       envelope.TypeExec,
		ExternalID: "invoice-2026-117", // the same name with the same content is the same action
		Tool:       envelope.Tool{Source: "notes", Name: "notes.create"},
		Args:       json.RawMessage(`{"title": "Invoice 117", "body": "paid"}`),
	}, 2*time.Second)
	if err != nil {
		return envelope.ActionID{}, err // errors.Is(err, client.ErrDenied) if policy denies it
	}
	fmt.Println(sent.Action.Envelope.ActionID, "is", sent.Action.Phase)
	return sent.Action.Envelope.ActionID, nil
}

// TestClientAgainstARealServer proposes, follows, approves and waits, as
// programs that import package client do.
func TestClientAgainstARealServer(t *testing.T) {
	t.Parallel()
	env, err := dev.Open(t.Context(), dev.Config{DatabaseURL: dbtest.URL(t), Listen: "127.0.0.1:0", Notes: sourcetest.Program(t, "examples/notes-mcp")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	})
	operator, err := client.New(env.URL(), env.Tokens().Operator, client.Config{})
	if err != nil {
		t.Fatal(err)
	}

	id, err := propose(t.Context(), env.URL(), env.Tokens().Agent)
	if err != nil {
		t.Fatal(err)
	}
	approved, err := operator.Approve(t.Context(), id, wire.Approval{Note: "as agreed"}, 0)
	if err != nil || approved.Phase == envelope.PhasePending {
		t.Fatalf("approved it is %s, %v", approved.Phase, err)
	}
	done, ended, err := operator.Wait(t.Context(), id, time.Minute)
	if err != nil || !ended || done.Phase != envelope.PhaseCompleted {
		t.Fatalf("it ended (%t) as %s, %v", ended, done.Phase, err)
	}
	errSeen := errors.New("seen")
	_, err = operator.Follow(t.Context(), client.FromStart, client.Watcher{
		Only: client.EventFilter{Action: id.String(), Kinds: []string{"settled"}}, Event: func(wire.Event) error { return errSeen },
	})
	if !errors.Is(err, errSeen) {
		t.Errorf("the stream ended with %v", err)
	}
	_, err = operator.Approve(t.Context(), id, wire.Approval{}, 0)
	if !errors.Is(err, client.ErrConflict) {
		t.Errorf("approved again it is %v, want a conflict", err)
	}
}
