// Agent-go proposes to store a note, waits for the end of the action, and
// prints the result.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// The exit codes.
const (
	failed = 1
	denied = 2
	waits  = 3
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: agent-go TITLE BODY")
		os.Exit(failed)
	}
	code, err := run(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, title, body string) (int, error) {
	c, err := client.New(os.Getenv("COUNTERSIGN_URL"), os.Getenv("COUNTERSIGN_TOKEN"), client.Config{Agent: "agent-go"})
	if err != nil {
		return failed, err
	}
	wait, err := time.ParseDuration(os.Getenv("AGENT_WAIT"))
	if err != nil {
		wait = 30 * time.Second
	}
	// The external_id makes the proposal safe to send again: the same name
	// with the same content is the same action.
	proposal, err := json.Marshal(map[string]any{
		"type": "mcp.exec", "external_id": "note " + title,
		"tool": map[string]string{"source": "notes", "name": "notes.create"},
		"args": map[string]string{"title": title, "body": body},
	})
	if err != nil {
		return failed, err
	}

	submitted, err := c.Submit(ctx, proposal, wait)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Action != nil {
		fmt.Println("denied:", p.Detail)
		return denied, nil
	}
	if err != nil {
		return failed, err
	}
	return report(submitted.Action), nil
}

// report prints the result of an action and returns the exit code.
func report(a wire.Action) int {
	switch a.Phase {
	case envelope.PhaseCompleted:
		fmt.Printf("done: %s\n", a.Envelope.Result.Output)
		return 0
	case envelope.PhasePending:
		fmt.Println("waits for a person:", a.Envelope.ActionID)
		return waits
	case envelope.PhaseDenied:
		fmt.Println("denied:", a.Decision.Note)
		return denied
	default:
		fmt.Println("not done:", a.Phase)
		return failed
	}
}
