package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// script is a program from testdata/npm; the test is skipped where it is not
// installed.
func script(t *testing.T, path ...string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	file, err := filepath.Abs(filepath.Join(append([]string{"testdata", "npm"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("testdata", "npm", "node_modules")); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm")
	}
	return []string{node, file}
}

// newFilesFixture is a tenant with the filesystem server from npm as the source "files",
// over a temporary folder. Writing a file requires approval.
func newFilesFixture(t *testing.T, cfg mcpserver.Config) (f *tenantFixture, dir string) {
	t.Helper()
	server := script(t, "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	dir, err := filepath.EvalSymlinks(t.TempDir()) // the server compares real paths
	if err != nil {
		t.Fatal(err)
	}
	live := connection.NewPool(connection.Config{Stdio: func(envelope.TenantID) bool { return true }})
	f = newFixtureOn(t, cfg, live).tenant("acme")
	config, err := json.Marshal(connection.MCPConfig{Transport: "stdio", Command: append(server, dir)})
	if err != nil {
		t.Fatal(err)
	}
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.id, catalog.Source{ID: "files", Kind: catalog.KindMCP, Config: config, Enabled: true}); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.id, "", "files:write_file", envelope.ModeRequireApproval, "test")
	})
	refresher := connection.NewRefresher(f.db, settings.NewCache(), live, slog.New(slog.DiscardHandler))
	if err := refresher.Refresh(t.Context(), f.id, "files"); err != nil {
		t.Fatal(err)
	}
	return f, dir
}

// probeLine is one line that the probe writes.
type probeLine struct {
	Tools    []struct{ Name string }
	Progress *struct{ Progress float64 }
	Result   *struct {
		Content []struct{ Text string }
		IsError bool
	}
	Error string
}

// probe runs a client from npm and passes its lines on.
func (f *tenantFixture) probe(kind string, words ...string) <-chan probeLine {
	f.t.Helper()
	args := append(script(f.t, "probe.mjs"), append([]string{kind}, words...)...)
	cmd := exec.CommandContext(f.t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "MCP_URL="+f.url, "MCP_TOKEN="+f.agent.Token.Text())
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	lines := make(chan probeLine, 1000)
	go func() { // ends with the program
		defer close(lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			var h probeLine
			if err := json.Unmarshal(scanner.Bytes(), &h); err != nil {
				h.Error = scanner.Text()
			}
			lines <- h
		}
		if err := cmd.Wait(); err != nil {
			lines <- probeLine{Error: err.Error() + complaints.String()}
		}
	}()
	return lines
}

// next is the next thing that a client receives.
func next(t *testing.T, lines <-chan probeLine) probeLine {
	t.Helper()
	select {
	case h := <-lines:
		if h.Error != "" {
			t.Fatalf("the client says: %s", h.Error)
		}
		return h
	case <-time.After(waitLimit):
		t.Fatal("the client says nothing")
		return probeLine{}
	}
}

func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"v1", "v2", "v2-2026-07-28"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f, dir := newFilesFixture(t, mcpserver.Config{Progress: 100 * time.Millisecond, Page: 5})
			file := filepath.Join(dir, "note.txt")
			args, err := json.Marshal(object{"path": file, "content": "hello"})
			if err != nil {
				t.Fatal(err)
			}

			listed := next(t, f.probe(kind, "list"))
			calling := f.probe(kind, "call", "files__write_file", string(args))
			if first := next(t, calling); first.Progress == nil {
				t.Fatalf("first the client received %+v, want progress", first)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("the file is there before anybody agreed")
			}
			f.grant(f.only())
			last := next(t, calling)
			for last.Progress != nil {
				last = next(t, calling)
			}

			for _, want := range []string{"files__write_file", "files__list_directory", "countersign_wait"} {
				if !slices.ContainsFunc(listed.Tools, func(tool struct{ Name string }) bool { return tool.Name == want }) {
					t.Errorf("the client sees no %s among %v", want, listed.Tools)
				}
			}
			if last.Result == nil || last.Result.IsError || len(last.Result.Content) != 1 || !strings.Contains(last.Result.Content[0].Text, "note.txt") {
				t.Errorf("the result is %+v, want the tool's own", last.Result)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "hello" {
				t.Errorf("file = %q, %v, want hello", text, err)
			}
		})
	}
}

// close() of these clients sends no DELETE.
func TestTypeScriptClientsThatCloseDoNotLockTheirTokenOut(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"v1", "v2"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mcpserver.Config{Sessions: 2}).tenant("acme")

			listed := next(t, f.probe(kind, "leave", "10"))

			if len(listed.Tools) != 2+len(followUps) {
				t.Errorf("after ten that left, a client sees %v", listed.Tools)
			}
		})
	}
}

// inspected is the output of the Inspector.
type inspected struct {
	Tools   []struct{ Name string }
	Content []struct{ Text string }
	// Structured is this package's own where it is not the tool's.
	Structured struct {
		Status string
		Action envelope.ActionID `json:"action_id"`
	} `json:"structuredContent"`
	IsError bool
}

// inspector returns the command line of the Inspector. The Inspector reads its
// own package.json, and is installed without the pages for browsers, so it
// runs in the folder where it finds one.
func inspector(t *testing.T) []string {
	t.Helper()
	modules := script(t, "node_modules")
	dir := t.TempDir()
	for from, to := range map[string]string{
		modules[1]: filepath.Join(dir, "node_modules"),
		filepath.Join(modules[1], "@modelcontextprotocol", "inspector-cli"): filepath.Join(dir, "cli"),
	} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"inspector","version":"1.0.3"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{modules[0], "--preserve-symlinks", "--preserve-symlinks-main", filepath.Join(dir, "cli", "build", "index.js")}
}

// inspect runs the Inspector's command line on a target.
func (f *tenantFixture) inspect(target []string, words ...string) inspected {
	f.t.Helper()
	args := append(inspector(f.t), target...)
	cmd := exec.CommandContext(f.t.Context(), args[0], append(args[1:], words...)...)
	cmd.Env = append(os.Environ(), "COUNTERSIGN_URL="+strings.TrimSuffix(f.url, "/mcp"), "COUNTERSIGN_TOKEN="+f.agent.Token.Text())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("inspector %v: %v\n%s%s", words, err, out, complaints.String())
	}
	var i inspected
	if err := json.Unmarshal(out, &i); err != nil {
		f.t.Fatalf("inspector %v: %v\n%s", words, err, out)
	}
	return i
}

func (f *tenantFixture) overHTTP() []string {
	return []string{f.url, "--transport", "http", "--header", "Authorization: Bearer " + f.agent.Token.Text()}
}

func TestInspector(t *testing.T) {
	t.Parallel()
	f, dir := newFilesFixture(t, mcpserver.Config{Wait: 200 * time.Millisecond})
	file := filepath.Join(dir, "note.txt")

	listed := f.inspect(f.overHTTP(), "--method", "tools/list")
	pending := f.inspect(f.overHTTP(), "--method", "tools/call", "--tool-name", "files__write_file", "--tool-arg", "path="+file, "--tool-arg", "content=hello")
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there before anybody agreed")
	}
	f.grant(pending.Structured.Action)
	done := f.inspect(f.overHTTP(), "--method", "tools/call", "--tool-name", "countersign_wait",
		"--tool-arg", "action_id="+pending.Structured.Action.String(), "--tool-arg", "seconds=60")

	if !slices.ContainsFunc(listed.Tools, func(tool struct{ Name string }) bool { return tool.Name == "files__write_file" }) {
		t.Errorf("the Inspector sees %v", listed.Tools)
	}
	if pending.Structured.Status != "pending" || pending.IsError {
		t.Errorf("result = %+v, want pending", pending)
	}
	if done.IsError || len(done.Content) != 1 || !strings.Contains(done.Content[0].Text, "note.txt") {
		t.Errorf("result = %+v, want the tool's own", done)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "hello" {
		t.Errorf("file = %q, %v, want hello", text, err)
	}
}

func TestInspectorOverTheBridge(t *testing.T) {
	t.Parallel()
	f, dir := newFilesFixture(t, mcpserver.Config{Wait: 30 * time.Second})
	binary := sourcetest.Program(t, "cmd/countersign")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	listed := f.inspect([]string{binary, "mcp"}, "--method", "tools/list")
	got := f.inspect([]string{binary, "mcp"}, "--method", "tools/call", "--tool-name", "files__list_directory", "--tool-arg", "path="+dir)

	if !slices.ContainsFunc(listed.Tools, func(tool struct{ Name string }) bool { return tool.Name == "files__write_file" }) {
		t.Errorf("the Inspector sees %v", listed.Tools)
	}
	if got.IsError || len(got.Content) != 1 || !strings.Contains(got.Content[0].Text, "a.txt") {
		t.Errorf("result = %+v, want the folder", got)
	}
}
