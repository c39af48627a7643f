package dev_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestReadmeCurl runs the README's lines of curl against an environment of its own.
func TestReadmeCurl(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed; the README's lines of curl cannot be run")
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- run by TestReadmeCurl -->\n```sh\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md has no block that is run by TestReadmeCurl")
	}
	h := open(t, dbtest.URL(t), t.TempDir())
	script := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(block[1]))
	script.Env = append(os.Environ(), "COUNTERSIGN_URL="+h.URL(), "AGENT_TOKEN="+h.Tokens().Agent, "OPERATOR_TOKEN="+h.Tokens().Operator)

	out, err := script.CombinedOutput()

	if err != nil {
		t.Fatalf("the README's curl: %v\n%s", err, out)
	}
	for _, want := range []string{`"status":"sent"`, `"phase":"completed"`, `"by":"demo operator (token `} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the README's curl answered without %s:\n%s", want, out)
		}
	}
	notes, err := os.ReadDir(h.NotesDir())
	if err != nil || len(notes) != 1 {
		t.Errorf("the notes' folder holds %v, %v, want the one note", notes, err)
	}
}
