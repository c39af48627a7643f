package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
	"github.com/countersign-dev/countersign/internal/executor/mcp"
)

func TestConformStdio(t *testing.T) {
	t.Parallel()
	executortest.Conform(t, func(t *testing.T) executortest.Harness {
		l := newLedger(t)
		src := open(t, stdio(t, "serve", l))
		args := json.RawMessage(`{"note":"n"}`)
		return executortest.Harness{
			Source:  src,
			Act:     executortest.Invocation{Tool: "act", Args: args},
			Count:   l.count,
			Fail:    executortest.Invocation{Tool: "fail", Args: args},
			BadArgs: executortest.Invocation{Tool: "act", Args: json.RawMessage(`{"note":7}`)},
			Hang:    executortest.Invocation{Tool: "hang", Args: args},
			Lose:    executortest.Invocation{Tool: "lose", Args: args},
			Restart: func(t *testing.T) {
				got := src.Execute(t.Context(), callOf(t, "lose", envelope.EffectKeyed))
				expect(t, got, executor.KindRetry, executor.CodeLost)
			},
			Without: map[executortest.Feature]string{
				executortest.Keys:       "the fixture counts every call, so that one that was doubled shows",
				executortest.RateLimits: "MCP over stdio has no words for it",
			},
		}
	})
}

func TestGarbageOnStdout(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newLedger(t)))

	once := src.Execute(t.Context(), callOf(t, "garble", envelope.EffectOnce))
	keyed := src.Execute(t.Context(), callOf(t, "garble", envelope.EffectKeyed))

	expect(t, once, executor.KindUnknown, executor.CodeMalformed)
	expect(t, keyed, executor.KindRetry, executor.CodeMalformed)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindDone, "")
}

func TestFrameLargerThanAllowed(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newLedger(t)))
	call := callOf(t, "big", envelope.EffectOnce)
	call.Args = json.RawMessage(`{"bytes":6000000}`)

	got := src.Execute(t.Context(), call)

	expect(t, got, executor.KindUnknown, executor.CodeOversized)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindDone, "")
}

func TestFloodOnStderr(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := stdio(t, "serve", newLedger(t))
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	src := open(t, cfg)

	got := src.Execute(t.Context(), callOf(t, "flood", envelope.EffectOnce))
	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	expect(t, got, executor.KindDone, "")
	if !strings.Contains(log.String(), "the last words") {
		t.Error("the log has not the end of stderr")
	}
	if log.Len() > 16<<10 {
		t.Errorf("the log has %d bytes, want little more than 8 KiB", log.Len())
	}
}

func TestChildrenThatDoNotServe(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode, code string
	}{
		"exits at once":         {"exit", executor.CodeNegotiation},
		"greets on stdout":      {"garbage", executor.CodeNegotiation},
		"never answers":         {"deaf", executor.CodeNegotiation},
		"takes no hint to stop": {"stubborn", executor.CodeNegotiation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := stdio(t, test.mode, newLedger(t))
			cfg.ListTimeout = time.Second
			src := open(t, cfg)

			got := src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce))

			expect(t, got, executor.KindRetry, test.code)
		})
	}
}

func TestNoSuchCommand(t *testing.T) {
	t.Parallel()
	src := open(t, mcp.Config{Transport: mcp.TransportStdio, Command: []string{"/nonexistent/mcp-server"}})

	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindRetry, executor.CodeUnreachable)
	if _, err := src.List(t.Context()); err == nil {
		t.Error("List() = nil, want an error")
	}
}

func TestChildThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newLedger(t)))
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindDone, "")

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got := src.Execute(ctx, callOf(t, "stop", envelope.EffectOnce))

	expect(t, got, executor.KindUnknown, executor.CodeTimeout)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindDone, "")
}

func TestCloseLeavesNobodyBehind(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	src := open(t, stdio(t, "family", newLedger(t), envAddr+"="+listener.Addr().String()))
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), executor.KindDone, "")
	grandchild, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}

	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	ends(t, grandchild)
}
