package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestConformStdio(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		l := newEffectLog(t)
		src := open(t, stdio(t, "serve", l))
		args := json.RawMessage(`{"note":"n"}`)
		return sourcetest.Harness{
			Source:  src,
			Act:     sourcetest.Invocation{Tool: "act", Args: args},
			Count:   l.count,
			Fail:    sourcetest.Invocation{Tool: "fail", Args: args},
			Refused: []sourcetest.Invocation{{Tool: "rpc_error", Args: args}, {Tool: "ask_elsewhere", Args: args}},
			Limited: sourcetest.Invocation{Tool: "busy", Args: args}, RetryAfter: 7 * time.Second,
			BadArgs: sourcetest.Invocation{Tool: "act", Args: json.RawMessage(`{"note":7}`)},
			Hang:    sourcetest.Invocation{Tool: "hang", Args: args},
			Lose:    sourcetest.Invocation{Tool: "lose", Args: args},
			Restart: func(t *testing.T) {
				got := src.Execute(t.Context(), callOf(t, "lose", envelope.EffectKeyed))
				expect(t, got, source.KindRetry, source.CodeLost)
			},
			Without: map[sourcetest.Feature]string{
				sourcetest.Keys: "the fixture counts every call, so that one that was doubled shows",
			},
		}
	})
}

// TestElevenProgramsAreListedTogether starts programs concurrently, as after the
// start of a worker.
func TestElevenProgramsAreListedTogether(t *testing.T) {
	t.Parallel()
	var g errgroup.Group
	for range 11 {
		src := open(t, stdio(t, "serve", newEffectLog(t)))
		g.Go(func() error {
			tools, err := src.List(t.Context())
			if err == nil && len(tools) == 0 {
				err = errors.New("no tools")
			}
			return err
		})
	}

	if err := g.Wait(); err != nil {
		t.Errorf("List() beside ten others = %v", err)
	}
}

func TestGarbageOnStdout(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newEffectLog(t)))

	once := src.Execute(t.Context(), callOf(t, "garble", envelope.EffectOnce))
	keyed := src.Execute(t.Context(), callOf(t, "garble", envelope.EffectKeyed))

	expect(t, once, source.KindUnknown, source.CodeMalformed)
	expect(t, keyed, source.KindRetry, source.CodeMalformed)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
}

func TestInvalidLinesAreSkipped(t *testing.T) {
	t.Parallel()
	skipped := 0
	cfg := stdio(t, "chatty", newEffectLog(t))
	cfg.SkippedLine = func() { skipped++ }
	src := open(t, cfg)

	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
	expect(t, src.Execute(t.Context(), callOf(t, "chat", envelope.EffectOnce)), source.KindDone, "")

	if got := source.SkippedLines(source.Guard("fixture", src, source.BreakerConfig{}, nil)); got != 3 || skipped != 3 {
		t.Errorf("%d lines were skipped and %d reported, want the greeting, its log and the one of the call", got, skipped)
	}
}

// TestChildEnvironment checks that a child inherits only PATH and HOME.
func TestChildEnvironment(t *testing.T) {
	t.Parallel()
	cfg := stdio(t, "serve", newEffectLog(t), "HOME=/another", "ADDED=1")
	src := open(t, cfg)

	got := src.Execute(t.Context(), callOf(t, "environ", envelope.EffectRead))

	var answer struct{ Structured struct{ Environ []string } }
	if err := json.Unmarshal(got.Result, &answer); err != nil {
		t.Fatalf("result = %s, %v", got.Result, err)
	}
	want := append([]string{"PATH=" + os.Getenv("PATH")}, cfg.Env...)
	slices.Sort(want)
	if environ := answer.Structured.Environ; !slices.Equal(slices.Sorted(slices.Values(environ)), want) {
		t.Errorf("environment of the child = %q, want %q", environ, want)
	}
}

// TestChildThatEndsIsRestarted expects the restart without a call.
func TestChildThatEndsIsRestarted(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	src := open(t, stdio(t, "family", newEffectLog(t), envAddr+"="+listener.Addr().String()))
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}

	expect(t, src.Execute(t.Context(), callOf(t, "garble", envelope.EffectOnce)), source.KindUnknown, source.CodeMalformed)

	ends(t, first)
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // due immediately
		t.Fatal(err)
	}
	if _, err := listener.Accept(); err != nil {
		t.Errorf("Accept() = %v, want a second child", err)
	}
}

func TestFrameLargerThanAllowed(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newEffectLog(t)))
	call := callOf(t, "big", envelope.EffectOnce)
	call.Args = json.RawMessage(`{"bytes":6000000}`)

	got := src.Execute(t.Context(), call)

	expect(t, got, source.KindUnknown, source.CodeOversized)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
}

func TestFloodOnStderr(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := stdio(t, "serve", newEffectLog(t))
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	src := open(t, cfg)

	got := src.Execute(t.Context(), callOf(t, "flood", envelope.EffectOnce))
	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	expect(t, got, source.KindDone, "")
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
		"exits at once":         {"exit", source.CodeNegotiation},
		"breaks a message off":  {"garbage", source.CodeNegotiation},
		"never answers":         {"deaf", source.CodeNegotiation},
		"takes no hint to stop": {"stubborn", source.CodeNegotiation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := stdio(t, test.mode, newEffectLog(t))
			cfg.ListTimeout = time.Second
			src := open(t, cfg)

			got := src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce))

			expect(t, got, source.KindRetry, test.code)
		})
	}
}

func TestNoSuchCommand(t *testing.T) {
	t.Parallel()
	src := open(t, mcp.Config{Transport: mcp.TransportStdio, Command: []string{"/nonexistent/mcp-server"}})

	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindRetry, source.CodeUnreachable)
	if _, err := src.List(t.Context()); err == nil {
		t.Error("List() = nil, want an error")
	}
}

func TestChildThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	src := open(t, stdio(t, "serve", newEffectLog(t)))
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got := src.Execute(ctx, callOf(t, "stop", envelope.EffectOnce))

	expect(t, got, source.KindUnknown, source.CodeTimeout)
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
}

func TestCloseEndsAllChildren(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	src := open(t, stdio(t, "family", newEffectLog(t), envAddr+"="+listener.Addr().String()))
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
	grandchild, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}

	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	ends(t, grandchild)
}
