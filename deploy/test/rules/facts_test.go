package rules_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
	"github.com/countersign-dev/countersign/deploy/test/rules"
)

// repository is the product's root, from here.
const repository = "../../.."

// programs builds the product's commands once, where the build cache does not
// have them, and returns their folder.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join(repository, "bin"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-C", repository, "-o", dir+"/", "./cmd/...")
	output, err := build.CombinedOutput()
	if err != nil {
		return string(output), err
	}
	return dir, nil
})

func built(t *testing.T) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatalf("build the product: %v\n%s", err, dir)
	}
	return dir
}

// facts reads the facts from the programs and their source.
func facts(t *testing.T) rules.Facts {
	t.Helper()
	dir := built(t)
	known := rules.Facts{Variables: map[string]map[string]bool{}, MaxConnections: maxConnections(t)}
	for _, program := range []string{"api", "worker", "triage"} {
		known.Variables[program] = table(t, help(t, filepath.Join(dir, program)))
	}
	for command, required := range map[string][]string{
		"migrate": {"DATABASE_URL"}, "doctor": {"DATABASE_URL"},
		"audit verify": {"COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"}, "triage run": {"DATABASE_URL"},
	} {
		variables := map[string]bool{}
		text := help(t, filepath.Join(dir, "countersign")) + help(t, filepath.Join(dir, "countersign"), strings.Fields(command)...)
		for _, name := range regexp.MustCompile(`\b(COUNTERSIGN_[A-Z_]+|DATABASE_URL)\b`).FindAllString(text, -1) {
			variables[name] = slices.Contains(required, name)
		}
		if command == "triage run" {
			maps.Copy(variables, known.Variables["triage"])
		}
		known.Variables["countersign "+command] = variables
	}
	flush := constant(t, "internal/telemetry/telemetry.go", "flushWithin")
	known.Stops = map[string]time.Duration{
		"api": constant(t, "internal/listen/listen.go", "drainFor") + flush,
		// Calls that were cut off are settled in a transaction, and stopping River has
		// the same limit; see Fleet.Run.
		"worker": 2*constant(t, "internal/worker/pipeline.go", "txTimeout") + flush,
		// The pass that is cut off, and the leases; see Engine.Run.
		"triage": 2*5*time.Second + flush,
	}
	return known
}

func help(t *testing.T, program string, words ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program, append(words, "--help")...).Output()
	if err != nil {
		t.Fatalf("%s %v --help: %v", program, words, err)
	}
	return string(text)
}

// table returns the variables of a program's help, with whether they are
// required.
func table(t *testing.T, text string) map[string]bool {
	t.Helper()
	variables := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^  ([A-Z][A-Z_]+) +(\S+)`).FindAllStringSubmatch(text, -1) {
		variables[row[1]] = row[2] == "required"
	}
	if !variables["DATABASE_URL"] {
		t.Fatalf("the help has no table of variables:\n%s", text)
	}
	return variables
}

// constant returns a duration that a file of the product declares, as in
// 10 * time.Second.
func constant(t *testing.T, file, name string) time.Duration {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repository, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found time.Duration
	ast.Inspect(tree, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name || len(spec.Values) != 1 {
			return true
		}
		if product, ok := spec.Values[0].(*ast.BinaryExpr); ok {
			if factor, ok := product.X.(*ast.BasicLit); ok {
				n, err := strconv.Atoi(factor.Value)
				if err != nil {
					t.Fatal(err)
				}
				found = time.Duration(n) * time.Second
			}
		}
		return true
	})
	if found == 0 {
		t.Fatalf("%s declares no %s in seconds", file, name)
	}
	return found
}

func maxConnections(t *testing.T) int {
	t.Helper()
	document, err := renderedtest.Source(t).File("k8s/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^max_connections: (\d+)$`).FindSubmatch(document)
	if found == nil {
		t.Fatal("deploy/k8s/README.md says no max_connections")
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestProgramsTakeTheValues starts each program with the values of its
// manifest, but without a database. It must not report any other problem.
func TestProgramsTakeTheValues(t *testing.T) {
	t.Parallel()
	sets := renderedtest.Sets(t)

	for name, set := range sets {
		for container, problem := range refused(t, rules.Environments(renderedtest.Typed(t, set))) {
			t.Errorf("%s: %s: %s", name, container, problem)
		}
	}
}

// TestProgramsTakeTheValuesCanFail sets values that no program takes.
func TestProgramsTakeTheValuesCanFail(t *testing.T) {
	t.Parallel()
	source := renderedtest.Source(t)

	for _, c := range []renderedtest.Control{
		on(worker, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_GRACE", "value": "45"}}]`, "COUNTERSIGN_GRACE"),
		on(api, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_DB_MAX_CONN", "value": "10"}}]`, "COUNTERSIGN_DB_MAX_CONN is unknown"),
	} {
		before, after := c.Sets(t, source)
		said := func(set rendered.Set) []string {
			return slices.Collect(maps.Values(refused(t, rules.Environments(renderedtest.Typed(t, set)))))
		}
		c.Found(t, said(before), said(after))
	}
}

// refused returns the errors of programs about their environments.
func refused(t *testing.T, environments []rules.Environment) map[string]string {
	t.Helper()
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	dir, problems := built(t), map[string]string{}
	for _, env := range environments {
		if !slices.Contains([]string{"api", "worker", "triage"}, env.Program) {
			continue
		}
		var environ []string
		for name, value := range env.Values {
			environ = append(environ, name+"="+value)
		}
		for _, name := range env.Secrets {
			if name != "DATABASE_URL" {
				environ = append(environ, name+"="+key)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		program := exec.CommandContext(ctx, filepath.Join(dir, env.Program))
		program.Env = environ
		output, err := program.CombinedOutput()
		lines := regexp.MustCompile(`(?m)^  .*`).FindAllString(string(output), -1)
		if err == nil || len(lines) != 1 || !strings.Contains(lines[0], "DATABASE_URL is required") {
			problems[env.Container] = string(output)
		}
	}
	return problems
}
