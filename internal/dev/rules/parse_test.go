package rules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the path by which packages of the module import each other.
const module = "github.com/countersign-dev/countersign"

// A repo is the parsed files of a module.
type repo struct {
	fset  *token.FileSet
	files []file
}

// file is one Go file. Its path and its package are relative to the module's
// root.
type file struct {
	path      string
	pkg       string
	text      string
	tree      *ast.File
	test      bool
	generated bool
}

// imported is one import of a file.
type imported struct {
	path  string // as written
	local string // relative to the module, "" if it is not of the module
	pos   token.Pos
}

func parse(sources map[string]string) (repo, error) {
	h := repo{fset: token.NewFileSet()}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		text := sources[name]
		tree, err := parser.ParseFile(h.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return repo{}, fmt.Errorf("parse the module: %w", err)
		}
		h.files = append(h.files, file{
			path: name, pkg: path.Dir(name), text: text, tree: tree,
			test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(tree),
		})
	}
	return h, nil
}

// at begins a finding with its place.
func (h repo) at(pos token.Pos, format string, args ...any) string {
	place := h.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", place.Filename, place.Line, fmt.Sprintf(format, args...))
}

// packages returns the files of each package, tests left out.
func (h repo) packages() map[string][]file {
	all := map[string][]file{}
	for _, f := range h.files {
		if !f.test {
			all[f.pkg] = append(all[f.pkg], f)
		}
	}
	return all
}

func (f file) imports() []imported {
	var all []imported
	for _, spec := range f.tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // not reached: the parser has read it
		}
		local := ""
		if name == module {
			local = "."
		} else if rest, ok := strings.CutPrefix(name, module+"/"); ok {
			local = rest
		}
		all = append(all, imported{path: name, local: local, pos: spec.Pos()})
	}
	return all
}

// isHelper reports whether a package only helps tests, by its name.
func isHelper(pkg string) bool { return strings.HasSuffix(path.Base(pkg), "test") }

// within reports whether a package is under a folder, or is it.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// called returns the name of a call's function as written, such as t.Skip or
// panic.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// calls visits every call of a file.
func calls(f file, visit func(name string, call *ast.CallExpr)) {
	ast.Inspect(f.tree, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			visit(called(call), call)
		}
		return true
	})
}
