package rules_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// layerOf returns the layer of a package, and the longest of its folders that holds
// the package.
func layerOf(pkg string) (layer int, folder string, ok bool) {
	for i, folders := range layers() {
		for _, f := range folders {
			if within(pkg, f) && len(f) > len(folder) {
				layer, folder, ok = i, f, true
			}
		}
	}
	return layer, folder, ok
}

// downwardImports lets a test import from its own layer as well: nothing imports
// a test, so that no circle can come of it.
func downwardImports(h repo) []string {
	var broken []string
	unknown := map[string]bool{}
	for _, f := range h.files {
		own, folder, ok := layerOf(f.pkg)
		if !ok {
			if !unknown[f.pkg] {
				broken = append(broken, fmt.Sprintf(
					"%s: package has no layer; add its folder to layers() in internal/dev/rules, above all it imports", f.pkg))
			}
			unknown[f.pkg] = true
			continue
		}
		for _, im := range f.imports() {
			other, at, ok := layerOf(im.local)
			switch {
			case !ok, at == folder, other < own:
			case f.test && (other == own || isHelper(im.local)):
			default:
				broken = append(broken, h.at(im.pos, "%s (layer %d) imports %s (layer %d), which is not below it",
					f.pkg, own, im.local, other))
			}
		}
	}
	return broken
}

// maxImports bounds the packages of the module that a package imports.
const maxImports = 22

func importsFew(h repo) []string {
	var broken []string
	for pkg, files := range h.packages() {
		if slices.ContainsFunc(commands(), func(folder string) bool { return within(pkg, folder) }) {
			continue
		}
		others := map[string]bool{}
		for _, f := range files {
			for _, im := range f.imports() {
				others[im.local] = true
			}
		}
		if delete(others, ""); len(others) > maxImports {
			broken = append(broken, fmt.Sprintf("%s: imports %d packages of the module, more than %d; divide the package", pkg, len(others), maxImports))
		}
	}
	return broken
}

// mailStandsApart checks the packages that mail and triage import, and the packages
// that import them.
func mailStandsApart(h repo) []string {
	var broken []string
	for _, f := range h.files {
		if f.test || isHelper(f.pkg) {
			continue
		}
		own := ""
		for family := range mailUses() {
			if within(f.pkg, family) {
				own = family
			}
		}
		for _, im := range f.imports() {
			about := within(im.local, "internal/mail") || within(im.local, "internal/triage")
			listed := func(folder string) bool {
				return im.local == folder || folder == "internal/mail" && within(im.local, folder) || im.local == folder+"/dbsqlc"
			}
			switch {
			case im.local == "":
			case own != "" && !within(im.local, own) && !slices.ContainsFunc(mailUses()[own], listed):
				broken = append(broken, h.at(im.pos, "%s imports %s, which mailUses does not list", f.pkg, im.local))
			case own == "" && about && !slices.ContainsFunc(usesMail(), func(folder string) bool { return within(f.pkg, folder) }):
				broken = append(broken, h.at(im.pos, "%s imports %s, and usesMail does not list it", f.pkg, im.local))
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

// adaptersIndependent checks that packages that call external services import
// neither each other nor the database. The packages below an adapter's folder are
// part of it.
func adaptersIndependent(h repo) []string {
	const family = "internal/source"
	adapter := func(pkg string) string {
		rest, ok := strings.CutPrefix(pkg, family+"/")
		if !ok || slices.Contains(sharedByAdapters(), pkg) || isHelper(pkg) {
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
			if other := adapter(im.local); other != "" && other != adapter(f.pkg) {
				broken = append(broken, h.at(im.pos, "%s imports the adapter %s; adapters do not see each other", f.pkg, im.local))
			}
			if f.pkg == family+"/breaker" {
				continue // it stores the shared state of sources
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
