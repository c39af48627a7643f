package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
)

func ExampleParse() {
	p, err := envelope.Parse([]byte(`{
		"type": "mcp.exec",
		"external_id": "digest-2026-07-01",
		"tool": {"name": "chat.postMessage", "source": "slack"},
		"args": {"text": "Daily digest", "channel": "#cs"},
		"constraints": {"rate_bucket": "slack.minute"}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Tool.Name)
	fmt.Println(string(p.Args))
	// Output:
	// chat.postMessage
	// {"channel":"#cs","text":"Daily digest"}
}

func ExampleParse_invalid() {
	_, err := envelope.Parse([]byte(`{
		"type": "mcp.exec",
		"tool": {"name": ""},
		"args": {"to": "a@example.com", "to": "b@example.com"},
		"status": "sent"
	}`))
	if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok {
		for _, f := range invalid.Fields {
			fmt.Println(f.Pointer, f.Rule, "-", f.Message)
		}
	}
	// Output:
	// /tool/name min_length - must not be empty; omit it instead
	// /args/to duplicate_key - occurs more than once in its object; keep one
	// /status unknown_field - is not a field of an envelope; what a tool needs goes into args
}

func ExampleProposal_Digest() {
	one, err := envelope.Parse([]byte(`{"type":"mcp.exec","tool":{"name":"pay"},"args":{"to":"x","amount":10}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := envelope.Parse([]byte(`{"args":{"amount":1.0e1,"to":"\u0078"},"tool":{"name":"pay"},"type":"mcp.exec"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := one.Digest()
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := other.Digest()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a == b)
	// Output: true
}

// The example of the README.
func ExampleProposal_Validate() {
	propose := func() error {
		p := envelope.Proposal{
			ExternalID: "invoice-2026-117",
			Type:       envelope.TypeExec,
			Tool:       envelope.Tool{Source: "notes", Name: "notes.create"},
			Args:       json.RawMessage(`{"title": "Invoice 117", "body": "paid"}`),
		}
		if err := p.Validate(); err != nil {
			return err // the error has the JSON Pointer and the rule
		}
		body, err := json.Marshal(p)
		fmt.Println(string(body))
		return err
	}
	fmt.Println(propose())
	// Output:
	// {"external_id":"invoice-2026-117","type":"mcp.exec","tool":{"name":"notes.create","source":"notes"},"args":{"title":"Invoice 117","body":"paid"}}
	// <nil>
}
