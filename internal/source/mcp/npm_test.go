package mcp_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

// npm configures a source of a server from testdata/npm, or skips the test if it
// is not installed.
func npm(t *testing.T, server string, args, env []string) mcp.Config {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	script, err := filepath.Abs(filepath.Join("testdata", "npm", "node_modules", "@modelcontextprotocol", server, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm")
	}
	return mcp.Config{
		Name:      server,
		Transport: mcp.TransportStdio,
		Command:   append([]string{node, script}, args...),
		Env:       env,
	}
}

func arguments(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestServerFilesystem(t *testing.T) {
	t.Parallel()
	// The server compares real paths.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := open(t, npm(t, "server-filesystem", []string{dir}, nil))
	write := func(path string) source.Outcome {
		return src.Execute(t.Context(), source.Call{
			Key: path, Tool: "write_file", Effect: envelope.EffectOnce, Attempt: 1,
			Args: arguments(t, map[string]string{"path": path, "content": "hello"}),
		})
	}

	tools, err := src.List(t.Context())
	if err != nil {
		t.Fatalf("List() = %v", err)
	}
	inside := write(filepath.Join(dir, "note.txt"))
	outside := write(filepath.Join(filepath.Dir(dir), "outside.txt"))
	unknown := src.Execute(t.Context(), callOf(t, "no_such_tool", envelope.EffectOnce))

	hints := make(map[string]source.Hints)
	for _, tool := range tools {
		hints[tool.Name] = tool.Hints
	}
	if h := hints["write_file"]; h.ReadOnly || !h.Idempotent || h.Destructive == nil || !*h.Destructive {
		t.Errorf("hints of write_file = %+v, want idempotent and destructive", h)
	}
	if h := hints["list_directory"]; !h.ReadOnly {
		t.Errorf("hints of list_directory = %+v, want read-only", h)
	}
	expect(t, inside, source.KindDone, "")
	if raw, err := os.ReadFile(filepath.Join(dir, "note.txt")); err != nil || string(raw) != "hello" {
		t.Errorf("file = %q, %v, want hello", raw, err)
	}
	expect(t, outside, source.KindRefused, source.CodeToolError)
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "outside.txt")); err == nil {
		t.Error("the file outside was written")
	}
	expect(t, unknown, source.KindRefused, source.CodeToolError)
}

func TestServerMemory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	src := open(t, npm(t, "server-memory", nil, []string{"MEMORY_FILE_PATH=" + file}))
	call := callOf(t, "create_entities", envelope.EffectIdempotent)
	call.Args = json.RawMessage(`{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`)

	first := src.Execute(t.Context(), call)
	call.Attempt = 2
	second := src.Execute(t.Context(), call)

	expect(t, first, source.KindDone, "")
	expect(t, second, source.KindDone, "")
	raw, err := os.ReadFile(file)
	if err != nil || strings.Count(string(raw), "Ada") != 1 {
		t.Errorf("memory = %q, %v, want Ada once", raw, err)
	}
}
