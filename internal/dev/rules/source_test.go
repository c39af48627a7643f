package rules_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// maxWiring bounds the lines of a file under cmd.
const maxWiring = 150

func cmdOnlyWires(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || !within(f.pkg, "cmd") {
			continue
		}
		if lines := strings.Count(f.text, "\n"); lines > maxWiring {
			broken = append(broken, fmt.Sprintf("%s: %d lines, more than %d; move what is not wiring to a package", f.path, lines, maxWiring))
		}
		if f.tree.Name.Name != "main" {
			broken = append(broken, h.at(f.tree.Name.Pos(), "package %s under cmd is not main; it belongs under internal", f.tree.Name.Name))
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if abstract, ok := node.(*ast.InterfaceType); ok && abstract.Methods.NumFields() > 0 {
				broken = append(broken, h.at(node.Pos(), "wiring declares no interface; the package that calls it does"))
			}
			return true
		})
	}
	return broken
}

// maxPackage bounds the lines of a package, without tests and generated files.
const maxPackage = 2500

func packagesAreSmall(h repo) []string {
	var broken []string
	for pkg, files := range h.packages() {
		lines := 0
		for _, f := range files {
			if !f.generated {
				lines += strings.Count(f.text, "\n")
			}
		}
		if lines > maxPackage && mayBeLarge()[pkg] == "" {
			broken = append(broken, fmt.Sprintf("%s: %d lines, more than %d; divide the package, or list it in mayBeLarge", pkg, lines, maxPackage))
		}
	}
	return broken
}

// The most lines of a file and of a function, tests and generated files left out.
const (
	maxFile     = 450
	maxFunction = 70
)

func filesAreShort(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || f.generated {
			continue
		}
		if lines := strings.Count(f.text, "\n"); lines > maxFile {
			broken = append(broken, fmt.Sprintf("%s: %d lines, more than %d; divide the file", f.path, lines, maxFile))
		}
		for _, declared := range f.tree.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok || mayBeLong()[f.path+" "+function.Name.Name] != "" {
				continue
			}
			if lines := h.fset.Position(function.End()).Line - h.fset.Position(function.Pos()).Line + 1; lines > maxFunction {
				broken = append(broken, h.at(function.Pos(), "%s has %d lines, more than %d; divide the function, or list it in mayBeLong", function.Name.Name, lines, maxFunction))
			}
		}
	}
	return broken
}

// rulesTakeTheTime finds where packages of rules read the clock; the time is an
// argument there.
func rulesTakeTheTime(h repo) []string {
	folders := []string{"envelope", "internal/audit", "internal/tenant", "internal/action"}
	var broken []string
	for _, f := range h.files {
		rules := slices.ContainsFunc(folders, func(folder string) bool { return within(f.pkg, folder) })
		if f.test || isHelper(f.pkg) || !rules {
			continue
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if sel, ok := node.(*ast.SelectorExpr); ok && slices.Contains([]string{"time.Now", "time.Since", "time.Until"}, types.ExprString(sel)) {
				broken = append(broken, h.at(sel.Pos(), "%s in a package of rules; take the time as an argument", types.ExprString(sel)))
			}
			return true
		})
	}
	return broken
}

func descriptiveNames(h repo) []string {
	vague := []string{
		"common", "domain", "helper", "helpers", "misc", "models", "pkg", "services", "shared", "types", "util", "utils",
	}
	var broken []string
	for _, f := range h.files {
		if f.generated {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(f.path, ".go"), "_test"), "/")
		for _, part := range parts {
			if slices.Contains(vague, part) {
				broken = append(broken, fmt.Sprintf("%s: %q does not say what is inside", f.path, part))
			}
		}
	}
	return broken
}

// serversHaveDeadlines requires that every HTTP server bounds the time in
// which a request must arrive. Without a bound, net/http waits for a body
// forever.
func serversHaveDeadlines(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test {
			continue
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CompositeLit:
				bounded := slices.ContainsFunc(node.Elts, func(e ast.Expr) bool {
					field, ok := e.(*ast.KeyValueExpr)
					return ok && types.ExprString(field.Key) == "ReadTimeout"
				})
				if node.Type != nil && types.ExprString(node.Type) == "http.Server" && !bounded {
					broken = append(broken, h.at(node.Pos(), "the server has no ReadTimeout; serve with internal/listen, or set it"))
				}
			case *ast.CallExpr:
				if name := types.ExprString(node.Fun); name == "http.Serve" || name == "http.ListenAndServe" {
					broken = append(broken, h.at(node.Pos(), "%s has no deadlines; serve with internal/listen", name))
				}
			}
			return true
		})
	}
	return broken
}

func noInit(h repo) []string {
	var broken []string
	for _, f := range h.files {
		for _, decl := range f.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !f.generated {
				broken = append(broken, h.at(fn.Pos(), "func init runs behind everyone's back; build the value where it is used"))
			}
		}
	}
	return broken
}

// noMutableVariables allows a package variable that is only ever read: it is
// nowhere assigned to, its address is not taken (that of an element may be), it
// is no lock or other cell, and if it is exported, so that any package could
// assign it, it is an error or an embedded file.
func noMutableVariables(h repo) []string {
	var broken []string
	for pkg, files := range h.packages() {
		if isHelper(pkg) {
			continue
		}
		files = slices.DeleteFunc(files, func(f file) bool { return f.generated })
		for _, f := range files {
			broken = append(broken, h.mutableDeclarations(f)...)
		}
		broken = append(broken, h.assignments(pkg, files)...)
	}
	return broken
}

func (h repo) mutableDeclarations(f file) []string {
	var broken []string
	for _, decl := range f.tree.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			vars, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			if cell(vars) {
				broken = append(broken, h.at(spec.Pos(), "package variable %s can change; make it a field of a value that is passed in", vars.Names[0].Name))
			}
			embedded := gen.Doc != nil && strings.Contains(docSource(gen.Doc), "//go:embed")
			for _, name := range vars.Names {
				if name.IsExported() && !embedded && !makesError(vars) {
					broken = append(broken, h.at(name.Pos(), "any package could assign the variable %s; make it a function or a constant", name.Name))
				}
			}
		}
	}
	return broken
}

// docSource returns a comment with its directives, which Text leaves out.
func docSource(group *ast.CommentGroup) string {
	var b strings.Builder
	for _, comment := range group.List {
		b.WriteString(comment.Text + "\n")
	}
	return b.String()
}

// cell reports whether a variable is of a kind meant to be changed.
func cell(vars *ast.ValueSpec) bool {
	for _, part := range append(slices.Clone(vars.Values), vars.Type) {
		if part == nil {
			continue
		}
		if call, ok := part.(*ast.CallExpr); ok && (called(call) == "make" || called(call) == "new") {
			return true
		}
		if lit, ok := part.(*ast.CompositeLit); ok {
			part = lit.Type
		}
		if sel, ok := part.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
				return true
			}
		}
	}
	return false
}

// makesError reports whether every value of a declaration is a new error.
func makesError(vars *ast.ValueSpec) bool {
	for _, value := range vars.Values {
		call, ok := value.(*ast.CallExpr)
		if !ok || !slices.Contains([]string{"errors.New", "fmt.Errorf", "fault.New"}, called(call)) {
			return false
		}
	}
	return len(vars.Values) > 0
}

// nothing imports no package, so that types.Config checks one package by
// itself. Names of other packages are unresolved, those of the package are
// resolved.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// assignments finds where a package changes its own package variables.
func (h repo) assignments(pkg string, files []file) []string {
	var trees []*ast.File
	for _, f := range files {
		trees = append(trees, f.tree)
	}
	uses := map[*ast.Ident]types.Object{}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	// Errors are expected: nothing is imported.
	checked, _ := config.Check(pkg, h.fset, trees, &types.Info{Uses: uses})

	var broken []string
	report := func(target ast.Expr) {
		for {
			switch x := target.(type) {
			case *ast.IndexExpr:
				target = x.X
			case *ast.SelectorExpr:
				target = x.X
			case *ast.StarExpr:
				target = x.X
			case *ast.ParenExpr:
				target = x.X
			case *ast.Ident:
				if v, ok := uses[x].(*types.Var); ok && v.Parent() == checked.Scope() {
					broken = append(broken, h.at(x.Pos(), "package variable %s is changed; make it a field of a value that is passed in", x.Name))
				}
				return
			default:
				return
			}
		}
	}
	for _, tree := range trees {
		ast.Inspect(tree, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				for _, target := range n.Lhs {
					report(target)
				}
			case *ast.IncDecStmt:
				report(n.X)
			case *ast.UnaryExpr:
				// The address of an element is often taken only to read it.
				if _, element := n.X.(*ast.IndexExpr); n.Op == token.AND && !element {
					report(n.X)
				}
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					report(n.Key)
					report(n.Value)
				}
			}
			return true
		})
	}
	return broken
}

func noSleepInTests(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if !f.test && !isHelper(f.pkg) {
			continue
		}
		synctest := slices.ContainsFunc(f.imports(), func(im imported) bool { return im.path == "testing/synctest" })
		calls(f, func(name string, call *ast.CallExpr) {
			if name == "time.Sleep" && !synctest {
				broken = append(broken, h.at(call.Pos(), "a test that sleeps is slow or wrong; use testing/synctest or pass the time"))
			}
		})
	}
	return broken
}

func skipsHaveReason(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if !f.test && !isHelper(f.pkg) {
			continue
		}
		calls(f, func(name string, call *ast.CallExpr) {
			receiver, method, _ := strings.Cut(name, ".")
			if !slices.Contains([]string{"t", "b", "f", "tb"}, receiver) {
				return
			}
			if method == "SkipNow" || (method == "Skip" || method == "Skipf") && len(call.Args) == 0 {
				broken = append(broken, h.at(call.Pos(), "a skipped test says why: t.Skip(\"reason\")"))
			}
		})
	}
	return broken
}

func notesNameIssue(h repo) []string {
	note := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	named := regexp.MustCompile(`\bTODO\(#\d+\): \S`)
	var broken []string
	for _, f := range h.files {
		if f.generated {
			continue
		}
		for _, group := range f.tree.Comments {
			for _, comment := range group.List {
				if note.MatchString(comment.Text) && !named.MatchString(comment.Text) {
					broken = append(broken, h.at(comment.Pos(), "a note of what is to do reads TODO(#123): what, until when"))
				}
			}
		}
	}
	return broken
}

// noLinterDirectives finds comments that address a linter other than
// staticcheck, the only one that runs.
func noLinterDirectives(h repo) []string {
	var broken []string
	for _, f := range h.files {
		for _, group := range f.tree.Comments {
			for _, comment := range group.List {
				if strings.Contains(comment.Text, "//no"+"lint") {
					broken = append(broken, h.at(comment.Pos(), "nothing runs this linter; delete the directive"))
				}
			}
		}
	}
	return broken
}

func panicsListed(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || f.generated || isHelper(f.pkg) || mayPanic()[f.path] != "" {
			continue
		}
		calls(f, func(name string, call *ast.CallExpr) {
			if name == "panic" {
				broken = append(broken, h.at(call.Pos(), "return an error, or list the file in mayPanic with the reason"))
			}
		})
	}
	return broken
}

func packageComments(h repo) []string {
	var broken []string
	for pkg, files := range h.packages() {
		var comments []string
		for _, f := range files {
			if f.tree.Doc.Text() != "" && !f.generated {
				comments = append(comments, f.path)
			}
		}
		generated := !slices.ContainsFunc(files, func(f file) bool { return !f.generated })
		switch {
		case generated:
		case len(comments) == 0:
			broken = append(broken, fmt.Sprintf("%s: package has no comment that says what it owns and what it refuses", pkg))
		case len(comments) > 1:
			broken = append(broken, fmt.Sprintf("%s: package has more than one comment: %s", pkg, strings.Join(comments, ", ")))
		}
	}
	return broken
}

func exportedComments(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || f.generated || f.tree.Name.Name == "main" {
			continue
		}
		for _, decl := range f.tree.Decls {
			for name, pos := range uncommented(decl) {
				broken = append(broken, h.at(pos, "exported %s has no comment", name))
			}
		}
	}
	return broken
}

// uncommented returns the exported names that a declaration leaves without a
// comment. A comment on a group of constants or variables is one for each.
func uncommented(decl ast.Decl) map[string]token.Pos {
	missing := map[string]token.Pos{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc.Text() == "" && (d.Recv == nil || exportedReceiver(d.Recv)) {
			missing[d.Name.Name] = d.Pos()
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc.Text() == "" && (d.Lparen.IsValid() || d.Doc.Text() == "") {
					missing[s.Name.Name] = s.Pos()
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && d.Doc.Text() == "" && s.Doc.Text() == "" && s.Comment.Text() == "" {
						missing[name.Name] = name.Pos()
					}
				}
			}
		}
	}
	return missing
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := false
	ast.Inspect(recv.List[0].Type, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok && !exported {
			exported = name.IsExported()
			return false
		}
		return true
	})
	return exported
}
