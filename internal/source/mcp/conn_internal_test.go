package mcp

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// answers is a connection that accepts every message and reads answers to one
// id.
type answers struct {
	sdk.Connection
	id jsonrpc.ID
}

func (answers) Write(context.Context, jsonrpc.Message) error { return nil }

func (a answers) Read(context.Context) (jsonrpc.Message, error) {
	return &jsonrpc.Response{ID: a.id, Result: json.RawMessage(`{"isError":true}`)}, nil
}

func TestAnswerAfterCancellationIsIgnored(t *testing.T) {
	t.Parallel()
	for name, cancelled := range map[string]bool{"answered": false, "cancelled first": true} {
		id, err := jsonrpc.MakeID(float64(7))
		if err != nil {
			t.Fatal(err)
		}
		conn, p := &watchedConn{Connection: answers{id: id}, pending: map[jsonrpc.ID]*probe{}}, new(probe)
		ctx := withProbe(t.Context(), ofCall, p)
		messages := []*jsonrpc.Request{{ID: id, Method: methodCallTool}}
		if cancelled {
			messages = append(messages, &jsonrpc.Request{Method: methodCancelled, Params: json.RawMessage(`{"requestId":7}`)})
		}
		for _, m := range messages {
			if err := conn.Write(ctx, m); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := conn.Read(t.Context()); err != nil {
			t.Fatal(err)
		}

		p.conn = nil // a probe requests the missing answer from its connection
		if got := p.seen().answered(); got == cancelled {
			t.Errorf("%s: answered = %t, want %t", name, got, !cancelled)
		}
	}
}
