// A small program on what oapi-codegen makes of the API's document.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	agent, operator := connect("COUNTERSIGN_TOKEN"), connect("OPERATOR_TOKEN")

	proposed, err := agent.SubmitActionWithResponse(ctx, nil, Proposal{
		Type: McpExec, ExternalId: new("welcome-1"),
		Tool: EnvelopeTool{Source: new("mail"), Name: "send_email"},
		Args: Args{"to": "ana@example.org", "subject": "Welcome"},
	})
	check(err, proposed.JSON201 != nil, proposed.Status)
	fmt.Println("proposed:", proposed.JSON201.Phase)
	id := proposed.JSON201.Envelope.ActionId

	waiting, err := agent.WaitForActionWithResponse(ctx, id, &WaitForActionParams{Wait: new("10ms")})
	check(err, waiting.JSON200 != nil, waiting.Status)
	fmt.Println("still waiting:", waiting.HTTPResponse.Header.Get("Countersign-Pending"))

	approved, err := operator.ApproveActionWithResponse(ctx, id, nil, ApproveActionJSONRequestBody{Note: new("As agreed.")})
	check(err, approved.JSON200 != nil, approved.Status)

	ended, err := agent.WaitForActionWithResponse(ctx, id, &WaitForActionParams{Wait: new("60s")})
	check(err, ended.JSON200 != nil, ended.Status)
	fmt.Println("ended:", ended.JSON200.Phase, ended.JSON200.Envelope.Args["to"])

	page, err := agent.ListActionsWithResponse(ctx, &ListActionsParams{Limit: new(1)})
	check(err, page.JSON200 != nil, page.Status)
	fmt.Println("listed:", len(page.JSON200.Items))

	called, err := agent.InvokeToolWithResponse(ctx, "mail:read", nil, InvokeToolJSONRequestBody{
		ExternalId: new("read-1"), Inputs: &map[string]any{"folder": "inbox"},
	})
	check(err, called.JSON200 != nil, called.Status)
	fmt.Println("called:", called.JSON200.Status)
}

// connect returns a client with the token that an environment variable has.
func connect(variable string) *ClientWithResponses {
	c, err := NewClientWithResponses(os.Getenv("COUNTERSIGN_URL"), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv(variable))
		return nil
	}))
	check(err, true, nil)
	return c
}

func check(err error, ok bool, status func() string) {
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		log.Fatal(status())
	}
}
