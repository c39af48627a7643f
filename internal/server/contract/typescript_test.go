package contract_test

import (
	"os"
	"path/filepath"
	"testing"
)

// compile generates the types of the API, checks the TypeScript programs against
// them and returns the folder with the compiled JavaScript.
func compile(t *testing.T) string {
	t.Helper()
	modules, dir := requireNPM(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/typescript")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t}
	run(t, f.program(dir, filepath.Join(modules, ".bin", "openapi-typescript"), document, "-o", "api.d.ts"))
	run(t, f.program(dir, filepath.Join(modules, ".bin", "tsc"), "--strict", "--noUncheckedIndexedAccess", "--skipLibCheck",
		"--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "contract.ts", "interrupts.ts"))
	return dir
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	dir := compile(t)
	t.Run("the generated client works", func(t *testing.T) { generatedClientWorks(t, dir) })
	t.Run("interrupts have the types of Agent Inbox", func(t *testing.T) { interruptsHaveTheTypesOfAgentInbox(t, dir) })
}

// The program has no casts and no any.
func generatedClientWorks(t *testing.T, dir string) {
	t.Parallel()
	f := newFixture(t)

	got := run(t, f.program(dir, "node", "contract.js"))

	const want = `proposed: pending
still waiting: true
approved: approved
ended: completed sent
arguments: ana@example.org
listed: 3 in 3 pages
called: success
refused: 400 /type required
denied: 403 denied
`
	if got != want {
		t.Errorf("the program printed\n%swant\n%s", got, want)
	}
}

// The program compiles the documented types of LangGraph's Agent Inbox against those of
// the API, and answers interrupts as it does.
func interruptsHaveTheTypesOfAgentInbox(t *testing.T, dir string) {
	t.Parallel()
	f := newFixture(t)

	got := run(t, f.program(dir, "node", "interrupts.js"))

	const plain, edited = `{"to":"ana@example.org","tags":["new",{"priority":1}],"subject":"Welcome"}`, `{"to":"ana@example.org","tags":["new",{"priority":2}],"subject":"Welcome"}`
	const want = "accept approved  " + plain + "\naccept as texts approved  " + plain + "\nedit approved  " + edited +
		"\nresponse denied Write to Bob. " + plain + "\nignore denied  " + plain + "\n"
	if got != want {
		t.Errorf("the program printed\n%swant\n%s", got, want)
	}
}
