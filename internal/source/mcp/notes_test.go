package mcp_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// TestNotes runs the example server as a separate process, over both transports.
func TestNotes(t *testing.T) {
	t.Parallel()
	binary := sourcetest.Program(t, "examples/notes-mcp")
	for name, connect := range map[string]func(t *testing.T, dir string) mcp.Config{
		"stdio": func(_ *testing.T, dir string) mcp.Config {
			return mcp.Config{Transport: mcp.TransportStdio, Command: []string{binary, "-dir", dir}}
		},
		"http": func(t *testing.T, dir string) mcp.Config {
			return mcp.Config{Transport: mcp.TransportHTTP, URL: serveNotes(t, binary, dir), Guard: safehttp.Guard{Networks: safehttp.Loopback()}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			src := open(t, connect(t, dir))
			create := source.Call{
				Key: "k-1", Tool: "notes.create", Effect: envelope.EffectKeyed, Attempt: 1,
				Args: json.RawMessage(`{"title":"Milk","body":"two litres"}`),
			}

			first := src.Execute(t.Context(), create)
			create.Attempt = 2
			second := src.Execute(t.Context(), create)
			publish := source.Call{
				Key: "k-2", Tool: "notes.publish", Effect: envelope.EffectIdempotent, Attempt: 1,
				Args: arguments(t, map[string]string{"id": first.ProviderID}),
			}
			busy := src.Execute(t.Context(), publish)
			published := src.Execute(t.Context(), publish)

			expect(t, first, source.KindDone, "")
			expect(t, second, source.KindDone, "")
			if first.ProviderID == "" || first.ProviderID != second.ProviderID {
				t.Errorf("ids = %q and %q, want one", first.ProviderID, second.ProviderID)
			}
			expect(t, busy, source.KindRetry, source.CodeRateLimited)
			expect(t, published, source.KindDone, "")
			if found, err := filepath.Glob(filepath.Join(dir, "*.md")); err != nil || len(found) != 1 {
				t.Errorf("notes = %v, %v, want one", found, err)
			}
		})
	}
}

// serveNotes starts the example over HTTP and returns its address.
func serveNotes(t *testing.T, binary, dir string) string {
	t.Helper()
	cmd := exec.Command(binary, "-dir", dir, "-http", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("notes-mcp ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "listening on ")
}
