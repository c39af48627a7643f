package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestMain makes the test binary the command line where it is called countersign.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "countersign" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], command.System{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Program: os.Args[0], Getenv: os.Getenv,
		}))
	}
	os.Exit(m.Run())
}

// TestFirstIntegration runs the commands of docs/first-integration.md against an
// environment of its own.
func TestFirstIntegration(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "first-integration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)<!-- run by TestFirstIntegration -->\n```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		script.Write(block[1])
	}
	dir := t.TempDir()
	h, err := dev.Open(t.Context(), dev.Config{DatabaseURL: dbtest.URL(t), Dir: dir, Listen: "127.0.0.1:0", Notes: notes(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"countersign": self, "notes-mcp": notes(t)} {
		if err := os.Symlink(program, filepath.Join(dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	tokens := h.Tokens()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "COUNTERSIGN_URL="+h.URL(), "AGENT_TOKEN="+tokens.Agent, "OPERATOR_TOKEN="+tokens.Operator, "ADMIN_TOKEN="+tokens.Admin)

	out, err := shell.CombinedOutput()

	if err != nil {
		t.Fatalf("the page's commands: %v\n%s", err, out)
	}
	for _, want := range []string{"as agreed", "invoices need a person"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page's commands printed no %q:\n%s", want, out)
		}
	}
	notes, err := os.ReadDir(filepath.Join(dir, "books"))
	if err != nil || len(notes) != 2 {
		t.Errorf("the folder holds %v, %v, want two notes", notes, err)
	}
}
