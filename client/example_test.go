package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// apiStub answers as an API does that has one action, which waits for a person.
func apiStub() *httptest.Server {
	const id = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	const item = `"action_id":"` + id + `","source":"mail","tool":"send_email"`
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/actions", answer(http.StatusCreated, `{"envelope":{"action_id":"`+id+`"},"phase":"pending"}`))
	mux.HandleFunc("GET /api/v1/actions/{id}/wait", answer(http.StatusOK, `{"envelope":{"result":{"output":"sent"}},"phase":"completed"}`))
	mux.HandleFunc("GET /api/v1/inbox", answer(http.StatusOK, `{"items":[{"kind":"approval",`+item+`,"args":{"to":"ana@example.org"},"etag":"v1"}],"next_cursor":null}`))
	mux.HandleFunc("POST /api/v1/actions/{id}/approve", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Match") != `"v1"` {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		answer(http.StatusOK, `{"phase":"approved"}`)(w, r)
	})
	mux.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Header.Get("Last-Event-ID") != "1-2-0" { // the connection is lost after two events
			fmt.Fprint(w, message("1-1-0", "proposed"), message("1-2-0", "decided"))
			return
		}
		fmt.Fprint(w, message("1-3-0", "settled"))
	})
	return httptest.NewServer(mux)
}

// An agent proposes an action, and waits until a person has approved it and the
// tool was called.
func Example() {
	server := apiStub()
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(server.URL, os.Getenv("COUNTERSIGN_TOKEN"), client.Config{Agent: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, err := c.Propose(ctx, envelope.Proposal{
		Type:       envelope.TypeExec,
		ExternalID: "welcome-ana", // the same name with the same content is the same action
		Tool:       envelope.Tool{Source: "mail", Name: "send_email"},
		Args:       json.RawMessage(`{"to": "ana@example.org"}`),
	}, 0)
	if errors.Is(err, client.ErrDenied) {
		fmt.Println("policy denies it:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sent.Action.Phase)
	done, ended, err := c.Wait(ctx, sent.Action.Envelope.ActionID, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ended, done.Phase, string(done.Envelope.Result.Output))
	// Output:
	// pending
	// true completed "sent"
}

// An operator approves the pending version that was shown: with the ETag the
// server refuses if the action was edited since.
func ExampleClient_Approve() {
	server := apiStub()
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(server.URL, os.Getenv("OPERATOR_TOKEN"), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	inbox, err := c.Inbox(ctx, client.InboxFilter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range inbox.Items {
		fmt.Println(item.Tool, string(item.Args))
		action, err := c.Approve(ctx, item.ActionID, wire.Approval{Note: "as agreed", ETag: item.ETag}, 0)
		if errors.Is(err, client.ErrChanged) {
			fmt.Println("it was edited: read it again")
			continue
		}
		fmt.Println(action.Phase, err)
	}
	// Output:
	// send_email {"to":"ana@example.org"}
	// approved <nil>
}

// A program follows the events. Follow resumes by itself when the connection is
// lost; the id that it returns resumes after a restart of the program.
func ExampleClient_Follow() {
	server := apiStub()
	defer server.Close()

	c, err := client.New(server.URL, os.Getenv("COUNTERSIGN_TOKEN"), client.Config{Pause: time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	errEnough := errors.New("enough")
	last, err := c.Follow(context.Background(), client.FromStart, client.Watcher{
		Event: func(e wire.Event) error {
			fmt.Println(e.ID, e.Kind)
			if e.Kind == "settled" {
				return errEnough
			}
			return nil
		},
	})
	fmt.Println("resume after", last, errors.Is(err, errEnough))
	// Output:
	// 1-1-0 proposed
	// 1-2-0 decided
	// 1-3-0 settled
	// resume after 1-3-0 true
}

// A program that only needs the answer of a tool calls it by name.
func ExampleClient_Invoke() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","outputs":{"celsius":21}}`)
	}))
	defer server.Close()

	c, err := client.New(server.URL, os.Getenv("COUNTERSIGN_TOKEN"), client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := c.Invoke(context.Background(), "weather:read", wire.Call{Inputs: json.RawMessage(`{"city": "Graz"}`)})
	fmt.Println(answer.Status, string(answer.Outputs), err)
	// Output:
	// success {"celsius":21} <nil>
}

// ordersTx replaces a transaction of pgx (pgx.Tx).
type ordersTx struct{}

func (ordersTx) QueryRow(context.Context, string, ...any) ids {
	return `["019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"]`
}

// ids is a row of the ids of proposals.
type ids string

func (r ids) Scan(dest ...any) error {
	*dest[0].(*string) = string(r)
	return nil
}

// An application proposes in the transaction in which it writes its own rows: if
// that is rolled back, nothing was proposed.
func ExampleProposeTx() {
	var tx ordersTx // pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { … })

	id, err := client.ProposeTx(context.Background(), tx, envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: "order 4711",
		Tool: envelope.Tool{Source: "crm", Name: "note"}, Args: json.RawMessage(`{"text": "Order 4711"}`),
	})
	if err != nil {
		fmt.Println(err) // roll back
		return
	}
	fmt.Println("the action will be", id)
	// Output: the action will be 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
}
