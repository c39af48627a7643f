package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

// Environment variables that configure this test binary as a child.
const (
	envMode      = "FIXTURE_MODE"
	envEffectLog = "FIXTURE_EFFECTS"
	envAddr      = "FIXTURE_ADDR"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(envMode); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m,
		// The SDK's server keeps a session until it is deleted, and some of
		// these tests do not delete it.
		goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

// child runs a program that a test starts over stdio.
func child(mode string) int {
	ctx := context.Background()
	switch mode {
	case "serve":
		l := effectLog(os.Getenv(envEffectLog))
		if err := l.server("stdio", nil).Run(ctx, &sdk.StdioTransport{}); err != nil {
			return 1
		}
	case "exit":
		return 3
	case "complains":
		fmt.Fprintf(os.Stderr, "starting\n\nno such account: %s\nsee \x1b[1mthe manual\n", os.Getenv("ACCOUNT"))
		return 3
	case "garbage":
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{}`)
		hang()
	case "chatty": // greets on stdout and serves
		fmt.Println("Welcome to this server, which does not know what stdout is for.")
		fmt.Println(`{"level":"info","msg":"ready"}`)
		l := effectLog(os.Getenv(envEffectLog))
		if err := l.server("stdio", nil).Run(ctx, &sdk.StdioTransport{}); err != nil {
			return 1
		}
	case "deaf": // never reads: the pipe to it fills up
		hold()
		hang()
	case "stubborn": // neither the end of input nor SIGTERM moves it
		signal.Ignore(syscall.SIGTERM)
		hold()
		hang()
	case "family": // starts a child of its own and serves
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envMode+"=stubborn")
		if err := cmd.Start(); err != nil {
			return 1
		}
		l := effectLog(os.Getenv(envEffectLog))
		if err := l.server("stdio", nil).Run(ctx, &sdk.StdioTransport{}); err != nil {
			return 1
		}
	case "owner": // itself the owner of a stubborn child
		src, err := mcp.New(mcp.Config{
			Name: "owned", Transport: mcp.TransportStdio, Command: []string{os.Args[0]},
			Env: []string{envMode + "=stubborn", envAddr + "=" + os.Getenv(envAddr)},
		})
		if err != nil {
			return 1
		}
		src.Execute(ctx, source.Call{Tool: "act"})
	}
	return 0
}

// hang blocks for ever. Handling a signal keeps the runtime from reporting a
// deadlock in a program without cgo.
func hang() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	select {}
}

// hold keeps a connection to the test open until this process ends.
func hold() {
	if addr := os.Getenv(envAddr); addr != "" {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			os.Exit(4)
		}
		go func() { _, _ = conn.Read(make([]byte, 1)) }()
	}
}

// effectLog is the file that counts effects, one key per line, written by any
// number of processes.
type effectLog string

func newEffectLog(t *testing.T) effectLog {
	t.Helper()
	return effectLog(filepath.Join(t.TempDir(), "effects"))
}

func (l effectLog) note(key string) error {
	f, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(key + "\n")
	return errors.Join(err, f.Close())
}

func (l effectLog) count(key string) int {
	raw, err := os.ReadFile(string(l))
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		if line == key+"\n" {
			n++
		}
	}
	return n
}

type actIn struct {
	Note string `json:"note"`
}

type actOut struct {
	ID string `json:"id"`
}

// server offers tools that act, fail, or hang until done is closed, among
// others.
func (l effectLog) server(transport string, done <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fixture", Version: "1"}, &sdk.ServerOptions{PageSize: 3})
	act := func(_ context.Context, req *sdk.CallToolRequest, in actIn) (*sdk.CallToolResult, actOut, error) {
		key, _ := req.Params.Meta[mcp.MetaIdempotencyKey].(string)
		return nil, actOut{ID: "id of " + in.Note}, l.note(key)
	}
	sdk.AddTool(s, &sdk.Tool{
		Name: "act", Title: "Act", Description: "Has an effect.",
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false)},
	}, act)
	sdk.AddTool(s, &sdk.Tool{Name: "lose"}, func(ctx context.Context, req *sdk.CallToolRequest, in actIn) (*sdk.CallToolResult, actOut, error) {
		_, out, err := act(ctx, req, in)
		if transport == "stdio" {
			os.Exit(5)
		}
		return nil, out, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ actIn) (*sdk.CallToolResult, actOut, error) {
		select {
		case <-ctx.Done():
		case <-done:
		}
		return nil, actOut{}, errors.New("hung")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "limited"}, act)
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, actIn) (*sdk.CallToolResult, actOut, error) {
		return nil, actOut{}, errors.New("no")
	})
	raw := func(name string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
	}
	raw("meta", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: req.Params.Meta}, nil
	})
	raw("content", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{
			Content: []sdk.Content{
				&sdk.TextContent{Text: "a < b"},
				&sdk.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"},
				&sdk.AudioContent{Data: []byte{3}, MIMEType: "audio/wav"},
				&sdk.ResourceLink{URI: "file:///x", Name: "x"},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "y"}},
			},
			StructuredContent: json.RawMessage(`{"id":"made-1","big":12345678901234567890}`),
		}, nil
	})
	raw("rpc_error", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("boom")
	})
	raw("ask_elsewhere", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: sdk.CodeURLElicitationRequired, Message: "open an address"}
	})
	raw("busy", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "busy", Data: json.RawMessage(
			`{"` + mcp.MetaOutcome + `":"` + source.CodeRateLimited + `","` + mcp.MetaRetryAfter + `":7}`)}
	})
	raw("big", func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct{ Bytes int }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", in.Bytes)}}}, nil
	})
	raw("garble", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Println(`{"jsonrpc":"2.0","id":`)
		return &sdk.CallToolResult{}, nil
	})
	raw("chat", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Println("this is no message")
		return &sdk.CallToolResult{}, nil
	})
	raw("environ", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"environ": os.Environ()}}, nil
	})
	raw("steps", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		// Twice the idle timeout of the test.
		for i := range 20 {
			note := &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)}
			if err := req.Session.NotifyProgress(ctx, note); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(200 * time.Millisecond):
			}
		}
		return &sdk.CallToolResult{}, nil
	})
	raw("flood", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, _ = os.Stderr.Write(bytes.Repeat([]byte("noise\n"), 200_000))
		fmt.Fprintln(os.Stderr, "the last words")
		return &sdk.CallToolResult{StructuredContent: map[string]any{"ok": true}}, nil
	})
	raw("stop", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		// The stopped process keeps its pipes open and answers no ping.
		return nil, syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	})
	return s
}

// open returns a source, which is closed at the end of the test.
func open(t *testing.T, cfg mcp.Config) *mcp.Source {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "fixture"
	}
	src, err := mcp.New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return src
}

// stdio configures a source that runs this binary in a mode.
func stdio(t *testing.T, mode string, l effectLog, env ...string) mcp.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Config{
		Transport: mcp.TransportStdio,
		Command:   []string{self},
		// Without GORACE a child under the race detector takes a second to exit.
		Env: append(env, envMode+"="+mode, envEffectLog+"="+string(l), "GORACE=atexit_sleep_ms=0"),
	}
}

// callOf returns a call of a tool with a key of the test.
func callOf(t *testing.T, tool string, effect envelope.Effect) source.Call {
	return source.Call{Key: t.Name(), Tool: tool, Args: json.RawMessage(`{"note":"n"}`), Effect: effect, Attempt: 1}
}

func expect(t *testing.T, got source.Outcome, kind source.Kind, code string) {
	t.Helper()
	if got.Kind != kind || got.Code != code {
		t.Errorf("Execute() = %s %q (%s) %s, want %s %q", got.Kind, got.Code, got.Message, got.Result, kind, code)
	}
}

// ends waits until the process at the other end of a connection has ended.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	if nerr, ok := errors.AsType[net.Error](err); ok && nerr.Timeout() {
		t.Error("the process is still there")
	}
	_ = conn.Close()
}
