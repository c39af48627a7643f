package contract_test

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedGoClientWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/go")); err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	download := f.program(dir, "go", "mod", "download")
	if out, err := download.CombinedOutput(); err != nil {
		t.Skipf("the generator cannot be downloaded: %s", out)
	}
	run(t, f.program(dir, "go", "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", document))

	got := run(t, f.program(dir, "go", "run", "."))

	const want = `proposed: pending
still waiting: true
ended: completed ana@example.org
listed: 1
called: success
`
	if got != want {
		t.Errorf("the program printed\n%swant\n%s", got, want)
	}
}
