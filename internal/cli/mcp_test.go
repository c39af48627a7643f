package cli_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func TestMCP(t *testing.T) {
	t.Parallel()
	d := open(t)
	fromClient, toCommand := io.Pipe()
	fromCommand, toClient := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	env := map[string]string{"COUNTERSIGN_URL": d.url + "/", "COUNTERSIGN_TOKEN": d.environment.Tokens().Agent}
	go func() { // waited for below
		code <- cli.Run(t.Context(), []string{"mcp"}, command.System{
			In: fromClient, Out: toClient, Err: &errs, Getenv: func(name string) string { return env[name] },
		})
		_ = toClient.Close()
	}()
	inner := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, nil)
	c, err := inner.Connect(t.Context(), &mcp.IOTransport{Reader: fromCommand, Writer: toCommand}, nil)
	if err != nil {
		t.Fatal(err)
	}

	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "notes__notes--list", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()

	if !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "notes__notes--create" }) {
		t.Errorf("tools = %v", tools.Tools)
	}
	if res.IsError || len(res.Content) == 0 || res.Meta["countersign.dev/action"] == nil {
		t.Errorf("result = %+v, want the tool's own, and the action", res)
	}
	if got := <-code; got != command.ExitOK || errs.Len() > 0 {
		t.Errorf("exit code %d, %s", got, errs.String())
	}
}

func TestMCPSaysWhyItCannotBegin(t *testing.T) {
	t.Parallel()
	d := open(t)

	d.want(d.run(t.Context(), "", "", "mcp"), command.ExitFailed, "COUNTERSIGN_TOKEN", "countersign token create")
	d.want(d.run(t.Context(), "cs_agent_none", "", "mcp"), command.ExitFailed, "does not take the token")
	d.url = "http://127.0.0.1:9"
	d.want(d.run(t.Context(), d.environment.Tokens().Agent, "", "mcp"), command.ExitFailed, "http://127.0.0.1:9/mcp")
	d.url = "ftp://nowhere"
	d.want(d.run(t.Context(), "", "", "mcp"), command.ExitUsage, "http://127.0.0.1:8080")
}
