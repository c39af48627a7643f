package rules_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// layerOf returns a package's layer by the longest line that matches it.
func layerOf(pkg string) (layer, bool) {
	plan := layers()
	if f, ok := plan[pkg]; ok {
		return f, true
	}
	for folder := path.Dir(pkg); folder != "."; folder = path.Dir(folder) {
		if f, ok := plan[folder+"/..."]; ok {
			return f, true
		}
	}
	return layer{}, false
}

// downwardImports lets a test import from its own level as well: nothing imports
// a test, so that no circle can come of it.
func downwardImports(h repo) []string {
	var broken []string
	unknown := map[string]bool{}
	for _, f := range h.files {
		own, ok := layerOf(f.pkg)
		if !ok {
			if !unknown[f.pkg] {
				broken = append(broken, fmt.Sprintf(
					"%s: package has no layer; add a line to layers() in internal/dev/rules, above all it imports", f.pkg))
			}
			unknown[f.pkg] = true
			continue
		}
		for _, im := range f.imports() {
			if im.local == "" {
				continue
			}
			other, ok := layerOf(im.local)
			switch {
			case !ok, other.below(own):
			case f.test && (other.level <= own.level || isHelper(im.local)):
			default:
				broken = append(broken, h.at(im.pos, "%s (layer %s) imports %s (layer %s), which is not below it",
					f.pkg, own, im.local, other))
			}
		}
	}
	return broken
}

func noCircles(h repo) []string {
	edges := map[string][]string{}
	for pkg, files := range h.packages() {
		for _, f := range files {
			for _, im := range f.imports() {
				if im.local != "" {
					edges[pkg] = append(edges[pkg], im.local)
				}
			}
		}
	}
	var broken []string
	done := map[string]bool{}
	var visit func(pkg string, way []string)
	visit = func(pkg string, way []string) {
		if i := slices.Index(way, pkg); i >= 0 {
			broken = append(broken, "packages import each other in a circle: "+strings.Join(append(way[i:], pkg), " → "))
			return
		}
		if done[pkg] {
			return
		}
		for _, next := range edges[pkg] {
			visit(next, append(slices.Clone(way), pkg))
		}
		done[pkg] = true
	}
	for _, pkg := range slices.Sorted(maps.Keys(edges)) {
		visit(pkg, nil)
	}
	return broken
}

// adaptersIndependent keeps the packages that call the outside from each other and
// from the database. What lies below an adapter's folder is part of it; what
// has a layer of its own is what adapters stand on.
func adaptersIndependent(h repo) []string {
	const family = "internal/source"
	adapter := func(pkg string) string {
		rest, ok := strings.CutPrefix(pkg, family+"/")
		if _, ground := layers()[pkg]; !ok || ground || isHelper(pkg) {
			return ""
		}
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	var broken []string
	for _, f := range h.files {
		if !within(f.pkg, family) {
			continue
		}
		for _, im := range f.imports() {
			if other := adapter(im.local); other != "" && other != adapter(f.pkg) && f.pkg != family+"/connect" {
				broken = append(broken, h.at(im.pos, "%s imports the adapter %s; adapters do not see each other", f.pkg, im.local))
			}
			if slices.Contains([]string{family + "/breaker", family + "/connect"}, f.pkg) {
				continue // these two keep what the fleet shares about sources
			}
			for _, database := range []string{
				module + "/internal/postgres", "github.com/jackc/pgx", "github.com/riverqueue/river", "database/sql",
			} {
				if within(im.path, database) {
					broken = append(broken, h.at(im.pos, "%s imports %s; adapters do not see the database", f.pkg, im.path))
				}
			}
		}
	}
	return broken
}

func onlyStoresImportSQL(h repo) []string {
	var broken []string
	for _, f := range h.files {
		name := path.Base(f.path)
		store := name == "store.go" || strings.HasPrefix(name, "store_")
		if store || f.pkg == "internal/postgres" || f.pkg == "internal/postgres/dbsqlc" {
			continue
		}
		for _, im := range f.imports() {
			if im.local == "internal/postgres/dbsqlc" {
				broken = append(broken, h.at(im.pos, "only store.go, store_*.go and internal/postgres may import dbsqlc"))
			}
		}
	}
	return broken
}

func helpersOnlyInTests(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || isHelper(f.pkg) {
			continue
		}
		for _, im := range f.imports() {
			// The benchmarks start the servers that they measure against.
			if f.pkg == "bench" && (im.local == "internal/mail/dovecottest" || im.local == "internal/triage/model/modeltest") {
				continue
			}
			if im.local != "" && isHelper(im.local) {
				broken = append(broken, h.at(im.pos, "%s is for tests alone", im.local))
			}
			if im.path == "testing" {
				broken = append(broken, h.at(im.pos, "testing is for tests and for packages whose name ends in test"))
			}
		}
	}
	return broken
}

// outgoingThroughSafehttp keeps connections to addresses that users configure
// behind one guard. Servers may listen anywhere.
func outgoingThroughSafehttp(h repo) []string {
	forbidden := map[string][]string{
		"net/http": {"DefaultClient", "DefaultTransport", "Client", "Transport", "Get", "Head", "Post", "PostForm"},
		"net":      {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer"},
	}
	var broken []string
	for _, f := range h.files {
		exempt := slices.ContainsFunc(slices.Collect(maps.Keys(mayDial())), func(at string) bool { return strings.HasPrefix(f.path, at) })
		if f.test || isHelper(f.pkg) || exempt || within(f.pkg, "cmd") {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			var made ast.Expr // http.Client and http.Transport as types of fields are fine
			switch n := n.(type) {
			case *ast.CompositeLit:
				made = n.Type
			case *ast.CallExpr:
				made = n.Fun
			case *ast.SelectorExpr:
				if n.Sel.Name == "DefaultClient" || n.Sel.Name == "DefaultTransport" {
					made = n
				}
			}
			if sel, ok := made.(*ast.SelectorExpr); ok {
				pkg, ok := sel.X.(*ast.Ident)
				for path, names := range forbidden {
					if ok && pkg.Name == path[strings.LastIndex(path, "/")+1:] && slices.Contains(names, sel.Sel.Name) {
						broken = append(broken, h.at(sel.Pos(), "%s.%s: outgoing connections are made by internal/safehttp", pkg.Name, sel.Sel.Name))
					}
				}
			}
			return true
		})
	}
	return broken
}
