package sourcetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programs names the variable with the folder of the programs that `make build`
// built.
const programs = "COUNTERSIGN_TEST_PROGRAMS"

// Program returns the absolute path of the program of a folder of this module,
// such as examples/notes-mcp. It is in the folder that COUNTERSIGN_TEST_PROGRAMS
// names, and is built without that variable.
func Program(t testing.TB, folder string) string {
	t.Helper()
	if built := os.Getenv(programs); built != "" {
		at := filepath.Join(built, filepath.Base(folder))
		if _, err := os.Stat(at); err != nil || !filepath.IsAbs(at) {
			t.Fatalf("%s: no program at the absolute path %s: run `make build`, or unset the variable", programs, at)
		}
		return at
	}
	at := filepath.Join(t.TempDir(), filepath.Base(folder))
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", at, "github.com/countersign-dev/countersign/"+folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build has it, so that little is compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return at
}
