package rules_test

import (
	"go/ast"
	"go/token"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayRunWithoutRaceDetector lists the packages with concurrent code of which not every
// test runs with the race detector in make check, and why.
func mayRunWithoutRaceDetector() map[string]string {
	return map[string]string{
		"internal/server/rest":     "most tests send one request after the other",
		"internal/tenant/policy":   "packages with the detector call it concurrently",
		"internal/triage/classify": "internal/triage/engine trains models with the detector",
		"internal/triage/engine":   "most tests read one account after the other",
		"internal/triage/evaluate": "its tests compute for minutes with the detector",
	}
}

// startsGoroutines reports whether code starts goroutines or uses channels. Waits for a
// context or a timer share nothing.
func startsGoroutines(code ast.Node) (found bool) {
	ast.Inspect(code, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt, *ast.SendStmt, *ast.ChanType:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW && !waits(n.X)
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && f.Sel.Name == "Go"
		}
		return !found
	})
	return found
}

// waits reports whether a channel is that of a context or a timer.
func waits(channel ast.Expr) bool {
	if call, ok := channel.(*ast.CallExpr); ok {
		channel = call.Fun
	}
	s, ok := channel.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Done" || s.Sel.Name == "C")
}

// shares reports whether code starts goroutines or uses channels, locks or atomics.
func shares(code ast.Node) bool {
	found := startsGoroutines(code)
	ast.Inspect(code, func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && (x.Name == "atomic" || x.Name == "sync" && !strings.HasPrefix(s.Sel.Name, "Once"))
		}
		return !found
	})
	return found
}

// racy returns the words that scripts/racy.sh prints.
func racy(t *testing.T, which string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "scripts/racy.sh", which)
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("racy.sh %s: %v", which, err)
	}
	return strings.Fields(string(out))
}

func TestConcurrentCodeRunsWithTheRaceDetector(t *testing.T) {
	t.Parallel()
	h, err := open(root())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("packages", func(t *testing.T) { concurrentPackages(t, h) })
	t.Run("tests", func(t *testing.T) { concurrentTests(t, h) })
}

func concurrentPackages(t *testing.T, h repo) {
	t.Helper()
	with := racy(t, "yes")
	for pkg, files := range h.packages() {
		if slices.Contains(with, module+"/"+pkg) || mayRunWithoutRaceDetector()[pkg] != "" || within(pkg, "internal/dev/rules") {
			continue
		}
		for _, f := range files {
			if !f.test && within(pkg, "internal") && shares(f.tree) {
				t.Errorf("%s is concurrent, and scripts/racy.sh does not list its package", f.path)
			}
		}
	}
}

// concurrentTests checks that a function of another file starts no goroutines for
// a test without the detector: tests of a package of which only some run with
// the race detector are chosen by their files.
func concurrentTests(t *testing.T, h repo) {
	t.Helper()
	some, others := racy(t, "some"), racy(t, "others")
	if len(some) < 3 || some[0] != "-run" || others[0] != "-skip" || !slices.Equal(some[1:], others[1:]) {
		t.Fatalf("racy.sh some printed %q, and others %q", some, others)
	}
	chosen := regexp.MustCompile(some[1])
	concurrent := map[string]string{} // a function of tests by the names of its folder, its package and itself, to its file
	key := func(f file, function string) string { return f.pkg + " " + f.tree.Name.Name + " " + function }
	tests := func(visit func(f file, function *ast.FuncDecl)) {
		for _, f := range h.files {
			if !f.test || !slices.Contains(some[2:], "./"+f.pkg) {
				continue
			}
			for _, declared := range f.tree.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok {
					visit(f, function)
				}
			}
		}
	}
	isTest := func(function *ast.FuncDecl) bool {
		name := function.Name.Name
		return function.Recv == nil && name != "TestMain" && regexp.MustCompile(`^(Test|Fuzz)`).MatchString(name)
	}
	tests(func(f file, function *ast.FuncDecl) {
		switch {
		case isTest(function):
			if shares(f.tree) && !chosen.MatchString(function.Name.Name) {
				t.Errorf("%s runs without the race detector in the concurrent file %s", function.Name.Name, f.path)
			}
		case startsGoroutines(function):
			concurrent[key(f, function.Name.Name)] = f.path
		}
	})
	if len(concurrent) == 0 {
		t.Error("no function of tests starts a goroutine")
	}
	tests(func(f file, function *ast.FuncDecl) {
		if shares(f.tree) {
			return
		}
		ast.Inspect(function, func(node ast.Node) bool {
			name := ""
			var at token.Pos
			if call, ok := node.(*ast.CallExpr); ok {
				at = call.Pos()
				switch fun := call.Fun.(type) {
				case *ast.Ident:
					name = fun.Name
				case *ast.SelectorExpr:
					name = fun.Sel.Name
				}
			}
			if from := concurrent[key(f, name)]; name != "" && from != "" {
				t.Error(h.at(at, "%s of %s starts goroutines; move the test to a file that does, which scripts/racy.sh chooses", name, from))
			}
			return true
		})
	})
}
