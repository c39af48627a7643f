package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session returns a client of a server over a fresh folder.
func session(t *testing.T, flaky int) (*mcp.ClientSession, string) {
	t.Helper()
	dir := t.TempDir()
	notes, err := openNotes(dir, flaky)
	if err != nil {
		t.Fatalf("openNotes() = %v", err)
	}
	t.Cleanup(func() { _ = notes.root.Close() })
	server, client := mcp.NewInMemoryTransports()
	ss, err := notes.server().Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatalf("connect the server: %v", err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatalf("connect the client: %v", err)
	}
	t.Cleanup(func() { _, _ = cs.Close(), ss.Wait() })
	return cs, dir
}

// use calls a tool and returns its structured result, or fails as the tool
// did.
func use(t *testing.T, cs *mcp.ClientSession, tool, key string, args any) (map[string]any, error) {
	t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if key != "" {
		params.Meta = mcp.Meta{metaKey: key}
	}
	res, err := cs.CallTool(t.Context(), params)
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return nil, err
	}
	if err != nil {
		t.Fatalf("CallTool(%s) = %v", tool, err)
	}
	if res.IsError {
		text, _ := json.Marshal(res.Content)
		return nil, errors.New(string(text))
	}
	out, _ := res.StructuredContent.(map[string]any)
	return out, nil
}

func mustUse(t *testing.T, cs *mcp.ClientSession, tool, key string, args any) map[string]any {
	t.Helper()
	out, err := use(t, cs, tool, key, args)
	if err != nil {
		t.Fatalf("%s = %v, want no error", tool, err)
	}
	return out
}

func TestToolsHaveHints(t *testing.T) {
	t.Parallel()
	cs, _ := session(t, 1)

	res, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("ListTools() = %v", err)
	}

	type hints struct{ ReadOnly, Idempotent, Destructive bool }
	got := make(map[string]hints)
	for _, tool := range res.Tools {
		a := tool.Annotations
		got[tool.Name] = hints{a.ReadOnlyHint, a.IdempotentHint, a.DestructiveHint != nil && *a.DestructiveHint}
		if tool.OutputSchema == nil {
			t.Errorf("%s declares no output schema", tool.Name)
		}
	}
	want := map[string]hints{
		"notes.create":  {},
		"notes.read":    {ReadOnly: true},
		"notes.list":    {ReadOnly: true},
		"notes.find":    {ReadOnly: true},
		"notes.append":  {},
		"notes.delete":  {Destructive: true},
		"notes.publish": {Idempotent: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
}

func TestNoteLivesOnDisk(t *testing.T) {
	t.Parallel()
	cs, dir := session(t, 1)

	made := mustUse(t, cs, "notes.create", "", createIn{Title: "Milk", Body: "two litres"})
	id, _ := made["id"].(string)
	mustUse(t, cs, "notes.append", "", appendIn{ID: id, Text: ", and bread"})

	path := filepath.Join(dir, id+".md")
	if made["path"] != path {
		t.Errorf("path = %v, want %s", made["path"], path)
	}
	raw, err := os.ReadFile(path)
	if want := "# Milk\n\ntwo litres, and bread"; err != nil || string(raw) != want {
		t.Errorf("file = %q, %v, want %q", raw, err, want)
	}
	read := mustUse(t, cs, "notes.read", "", idIn{ID: id})
	if diff := cmp.Diff(map[string]any{"id": id, "title": "Milk", "body": "two litres, and bread"}, read); diff != "" {
		t.Errorf("notes.read (-want +got):\n%s", diff)
	}
	list := mustUse(t, cs, "notes.list", "", struct{}{})
	if diff := cmp.Diff(map[string]any{"notes": []any{map[string]any{"id": id, "title": "Milk"}}}, list); diff != "" {
		t.Errorf("notes.list (-want +got):\n%s", diff)
	}
	mustUse(t, cs, "notes.delete", "", idIn{ID: id})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file after notes.delete: %v, want it gone", err)
	}
	if _, err := use(t, cs, "notes.delete", "", idIn{ID: id}); err == nil {
		t.Error("notes.delete again = nil, want an error")
	}
}

func TestCreateHonoursKeys(t *testing.T) {
	t.Parallel()
	cs, dir := session(t, 1)
	var wg sync.WaitGroup
	ids := make([]any, 8)
	for i := range ids {
		wg.Go(func() { ids[i] = mustUse(t, cs, "notes.create", "key-1", createIn{Title: "One", Body: "x"})["id"] })
	}
	wg.Wait()

	again := mustUse(t, cs, "notes.create", "key-1", createIn{Title: "Other", Body: "y"})
	other := mustUse(t, cs, "notes.create", "key-2", createIn{Title: "Two", Body: "x"})

	if diff := cmp.Diff(map[string]any{"found": true, "id": again["id"]}, mustUse(t, cs, "notes.find", "", findIn{Key: "key-1"})); diff != "" {
		t.Errorf("notes.find of key-1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"found": false}, mustUse(t, cs, "notes.find", "", findIn{Key: "key-3"})); diff != "" {
		t.Errorf("notes.find of key-3 (-want +got):\n%s", diff)
	}
	for _, id := range ids {
		if id != again["id"] {
			t.Errorf("id under key-1 = %v, want %v", id, again["id"])
		}
	}
	if other["id"] == again["id"] {
		t.Error("key-2 made the note of key-1")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("folder has %d entries, %v, want 2", len(entries), err)
	}
	if read := mustUse(t, cs, "notes.read", "", idIn{ID: again["id"].(string)}); read["title"] != "One" {
		t.Errorf("title = %v, want the first one's", read["title"])
	}
}

func TestPublishFailsAtFirst(t *testing.T) {
	t.Parallel()
	cs, dir := session(t, 2)
	id := mustUse(t, cs, "notes.create", "", createIn{Title: "News", Body: "x"})["id"].(string)

	var got []bool
	for range 4 {
		_, err := use(t, cs, "notes.publish", "", idIn{ID: id})
		got = append(got, err == nil)
	}

	want := []bool{false, false, true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tries (-want +got):\n%s", diff)
	}
	f, err := os.Open(filepath.Join(dir, publishLog))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var logged []bool
	for dec := json.NewDecoder(f); ; {
		var line try
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		logged = append(logged, line.OK)
	}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Errorf("%s (-want +got):\n%s", publishLog, diff)
	}
}

func TestFilesOutsideTheFolderAreNotTouched(t *testing.T) {
	t.Parallel()
	cs, dir := session(t, 0)
	outside := filepath.Join(filepath.Dir(dir), "secret.md")
	if err := os.WriteFile(outside, []byte("# secret\n\nkept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}

	for _, id := range []string{"../secret", "link", "/etc/passwd", "..", "", ".", "a/b", `..\secret`, "x\x00y", "PUBLISH"} {
		for _, tool := range []string{"notes.read", "notes.append", "notes.delete", "notes.publish"} {
			args := map[string]any{"id": id}
			if tool == "notes.append" {
				args["text"] = "x"
			}
			if _, err := use(t, cs, tool, "", args); err == nil {
				t.Errorf("%s(%q) = nil, want an error", tool, id)
			}
		}
	}

	if raw, err := os.ReadFile(outside); err != nil || string(raw) != "# secret\n\nkept" {
		t.Errorf("file outside = %q, %v, want it untouched", raw, err)
	}
}

func TestCreateRefusesBadTitles(t *testing.T) {
	t.Parallel()
	cs, dir := session(t, 0)

	for _, title := range []string{"", "  ", "two\nlines", strings.Repeat("x", maxTitle+1)} {
		if _, err := use(t, cs, "notes.create", "", createIn{Title: title, Body: "x"}); err == nil {
			t.Errorf("notes.create(%.20q) = nil, want an error", title)
		}
	}

	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("folder has %d entries, %v, want none", len(entries), err)
	}
}

func TestRunServesHTTP(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-dir", t.TempDir(), "-http", "127.0.0.1:0"}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("first line = %q", line)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}

	made := mustUse(t, cs, "notes.create", "", createIn{Title: "Over HTTP", Body: "x"})

	if made["id"] == "" {
		t.Error("notes.create has no id")
	}
	if err := cs.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run() = %v, want nil", err)
	}
}

func TestRunRefusesBadFlags(t *testing.T) {
	t.Parallel()

	if err := run(t.Context(), nil, io.Discard, io.Discard); err == nil {
		t.Error("run() without -dir = nil, want an error")
	}
	if err := run(t.Context(), []string{"-help"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("run(-help) = %v, want %v", err, flag.ErrHelp)
	}
}
