package rules_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// layers lists the folders of each layer, the lowest first. A package imports only
// packages of its own folder and of lower layers; the longest folder that holds a
// package counts.
func layers() [][]string {
	return [][]string{
		{"db", "schemas", "web", "internal/coalesce", "internal/encryption", "internal/fault", "internal/safehttp", "internal/slot", "internal/visible"},
		{"envelope", "internal/listen", "internal/lookalike", "internal/mail"},
		{"client", "internal/check", "internal/jsonref", "internal/postgres", "internal/telemetry"},
		{"internal/audit", "internal/config", "internal/redact", "internal/schema"},
		{"internal/source"},
		{"internal/tenant"},
		{"internal/connection", "internal/triage"},
		{"internal/action"},
		{"internal/insight"},
		{"internal/server", "internal/worker"},
		{"internal/dev"},
		{"internal/cli"},
		{".", "bench", "cmd", "deploy", "examples", "tools"},
	}
}

// commands are the folders of programs, whose packages may import any number of
// packages.
func commands() []string {
	return []string{"bench", "cmd", "examples", "internal/cli", "internal/dev"}
}

// sharedByAdapters lists the packages of internal/source that adapters import.
func sharedByAdapters() []string { return []string{"internal/source/breaker", "internal/source/rest"} }

// mailUses lists the packages that mail and triage may import, in addition to
// their own.
func mailUses() map[string][]string {
	return map[string][]string{
		"internal/mail": {"internal/safehttp"},
		"internal/triage": {
			"client/wire", "envelope", "internal/mail", "internal/check", "internal/config", "internal/encryption", "internal/fault",
			"internal/jsonref", "internal/postgres", "internal/safehttp", "internal/schema", "internal/source", "internal/source/mcp", "internal/source/oauth",
			"internal/lookalike", "internal/tenant/settings", "internal/visible",
		},
	}
}

// usesMail lists the folders outside mail and triage that may import them: the
// programs, the sources of kind mail and dav, and the part of the server that shows them.
func usesMail() []string {
	return append(commands(), "internal/source/mail", "internal/source/dav", "internal/server/rest/triage")
}

// mayPanic lists the files in which a panic is right, and why.
func mayPanic() map[string]string {
	return map[string]string{}
}

// mayBeLarge lists the packages of more than maxPackage lines, and why each is
// one subject.
func mayBeLarge() map[string]string {
	return map[string]string{
		"bench":                     "is benchmarks, one a file",
		"client":                    "is one method an operation of the API",
		"client/wire":               "is one representation a type, without code",
		"internal/cli/triage":       "is the commands of one noun, one a file",
		"internal/server/mcpserver": "is one protocol",
		"internal/tenant/identity":  "issues and checks every kind of credential",
		"internal/tenant/catalog":   "is one document, its store and its search",
		"internal/triage/evaluate":  "is figures of one report, a kind a file",
		"internal/triage/classify":  "is the embedded models and their training",
		"internal/triage/reader":    "is one pipeline: messages of an account to decisions",
		"internal/triage/signal":    "is rules over a message, one a file",
		"internal/worker":           "is one pipeline: claims, checks, calls and settlements",
	}
}

// mayBeLong lists the functions of more than maxFunction lines, and why.
func mayBeLong() map[string]string {
	return map[string]string{
		"internal/server/rest/route/table.go Table":   "is the table of routes",
		"internal/triage/signal/symbol.go Rules":      "is the table of rules",
		"internal/source/resttest/resttest.go Faults": "is the table of faults",
	}
}

// mayDial lists the files and folders that make HTTP clients or connections of
// their own, and why. All other code takes them from internal/safehttp.
func mayDial() map[string]string {
	return map[string]string{
		"bench/":                                 "measures against servers that it starts",
		"deploy/test/kubetest/":                  "starts the API server that it connects to",
		"client/client.go":                       "runs in programs of others, which choose the address and pass a client of their own",
		"internal/cli/login/":                    "runs at a person's terminal, with the address and the issuer that the person configured",
		"internal/dev/":                          "starts the servers that it connects to",
		"internal/postgres/embedded/":            "listens on the local machine",
		"internal/server/mcpserver/":             "the stdio bridge runs at a person's terminal, with the address that the person configured",
		"internal/server/contract/":              "examples of clients",
		"examples/":                              "examples of clients and servers",
		"internal/safehttp/guard.go":             "is the guard",
		"internal/tenant/identity/identitytest/": "is a server for tests",
	}
}

// rules are the rules for every file of the module. Each returns its
// violations, one line for each place.
func rules() map[string]func(repo) []string {
	return map[string]func(repo) []string{
		"imports only from lower layers":       downwardImports,
		"no circles":                           noCircles,
		"packages import few others":           importsFew,
		"mail and triage stand apart":          mailStandsApart,
		"adapters stand alone":                 adaptersIndependent,
		"only store files import dbsqlc":       onlyStoresImportSQL,
		"test helpers only in tests":           helpersOnlyInTests,
		"cmd only wires":                       cmdOnlyWires,
		"packages are small":                   packagesAreSmall,
		"files and functions are short":        filesAreShort,
		"rules take the time":                  rulesTakeTheTime,
		"names say what is inside":             descriptiveNames,
		"outgoing HTTP goes through safehttp":  outgoingThroughSafehttp,
		"servers have deadlines":               serversHaveDeadlines,
		"no init":                              noInit,
		"no mutable package variables":         noMutableVariables,
		"no sleep in tests":                    noSleepInTests,
		"skips have a reason":                  skipsHaveReason,
		"notes of what is to do name an issue": notesNameIssue,
		"panics only where listed":             panicsListed,
		"packages have a comment":              packageComments,
		"exported names have a comment":        exportedComments,
		"comments say more than the name":      commentsSayMore,
		"names and comments use plain words":   plainWords,
		"no directives for linters":            noLinterDirectives,
	}
}

func TestRules(t *testing.T) {
	t.Parallel()

	h, err := open(root())
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, broken := range rule(h) {
				t.Error(broken)
			}
		})
	}
}

// open reads every Go file of a tree, nested modules included. Folders that Go
// ignores are left out.
func open(tree fs.FS) (repo, error) {
	sources := map[string]string{}
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file == "." {
				return nil
			}
			ignored := name == "testdata" || name == "vendor" || name == "node_modules"
			if ignored || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		sources[file] = string(text)
		return err
	})
	if err != nil {
		return repo{}, fmt.Errorf("read the module: %w", err)
	}
	return parse(sources)
}

// TestRulesCanFail runs each rule on a module that breaks it, and on one that
// does not.
func TestRulesCanFail(t *testing.T) {
	t.Parallel()

	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			samples, ok := violations()[name]
			if !ok {
				t.Fatalf("rule %q has no sample that breaks it", name)
			}
			for _, sample := range samples {
				h, err := parse(sample.sources)
				if err != nil {
					t.Fatal(err)
				}

				got := rule(h)

				if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, sample.want) }) {
					t.Errorf("found %q, want one that says %q", got, sample.want)
				}
			}
			h, err := parse(conforming())
			if err != nil {
				t.Fatal(err)
			}
			if got := rule(h); len(got) > 0 {
				t.Errorf("found %q in a module that is in order", got)
			}
		})
	}
}

func TestLayerOf(t *testing.T) {
	t.Parallel()

	for pkg, want := range map[string]string{
		"internal/source":          "internal/source",
		"internal/source/slack":    "internal/source",
		"internal/source/mcp/wire": "internal/source",
		"internal/postgres/dbtest": "internal/postgres",
		"cmd/api":                  "cmd",
		".":                        ".",
		"internal/sources":         "",
		"internal":                 "",
	} {
		_, folder, _ := layerOf(pkg)
		if folder != want {
			t.Errorf("layerOf(%q) = %q, want %q", pkg, folder, want)
		}
	}
}
