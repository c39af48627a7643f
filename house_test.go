package countersign_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A floor is where a package stands: a storey, and a step on it. A package
// imports only from below.
type floor struct{ storey, step int }

func (f floor) below(g floor) bool {
	return f.storey < g.storey || f.storey == g.storey && f.step < g.step
}

func (f floor) String() string { return fmt.Sprintf("%d.%d", f.storey, f.step) }

// floors is the plan of the house. A line ends in "/..." for all packages
// below a folder; the longest line that matches a package holds. A new package
// gets a line here, above everything it imports and below everything that
// imports it. A family takes a step for each of its members that others of it
// import.
func floors() map[string]floor {
	return map[string]floor{
		"db":                 {1, 0},
		"internal/fault":     {1, 0},
		"internal/telemetry": {1, 1},
		"schemas":            {1, 0},

		"envelope/internal/...":      {2, 0},
		"envelope":                   {2, 1},
		"internal/postgres/dbsqlc":   {2, 0},
		"internal/postgres":          {2, 2},
		"internal/postgres/embedded": {2, 3},
		"internal/postgres/dbtest":   {2, 4},

		"internal/audit":                 {3, 0},
		"internal/circuit":               {3, 0},
		"internal/executor":              {3, 0},
		"internal/executor/executortest": {3, 1},
		"internal/executor/rest":         {3, 1},
		"internal/executor/...":          {3, 2},
		"internal/gate":                  {3, 0},
		"internal/limit":                 {3, 1},
		"internal/policy":                {3, 0},

		"internal/catalog":               {4, 0},
		"internal/identity":              {4, 0},
		"internal/identity/identitytest": {4, 1},
		"internal/note":                  {4, 0},
		"internal/outbox":                {4, 0},
		"internal/retention":             {4, 0},

		"internal/approval":  {5, 0},
		"internal/batch":     {5, 1},
		"internal/doctor":    {5, 1},
		"internal/forensic":  {5, 1},
		"internal/guide":     {5, 0},
		"internal/intake":    {5, 0},
		"internal/notice":    {5, 1},
		"internal/overview":  {5, 0},
		"internal/rehearsal": {5, 1},
		"internal/verify":    {5, 0},

		"internal/client":     {6, 0},
		"internal/login":      {6, 0},
		"internal/mail":       {6, 0},
		"internal/model":      {6, 0},
		"internal/triage":     {6, 1},
		"internal/triage/...": {6, 2},
		"internal/worker":     {6, 0},

		"internal/api":      {7, 0},
		"internal/mcpfront": {7, 0},
		"internal/dev":      {7, 1},
		"internal/cli":      {7, 2},

		".":                  {8, 0},
		"web":                {8, 0},
		"bench":              {8, 1},
		"bench/...":          {8, 1},
		"cmd/...":            {8, 1},
		"examples/...":       {8, 1},
		"internal/tools/...": {8, 1},
	}
}

// mayPanic lists the files in which a panic is right, and why.
func mayPanic() map[string]string {
	return map[string]string{}
}

// rules are what every file of the house keeps to. Each returns what breaks
// it, one line for each place.
func rules() map[string]func(house) []string {
	return map[string]func(house) []string{
		"imports only from lower floors":       lowerFloors,
		"no circles":                           noCircles,
		"adapters stand alone":                 adaptersAlone,
		"only store files import dbsqlc":       oneDoorToSQL,
		"test helpers only in tests":           helpersOnlyInTests,
		"cmd only wires":                       cmdOnlyWires,
		"names say what is inside":             tellingNames,
		"no init":                              noInit,
		"no mutable package variables":         noMutableVariables,
		"no sleep in tests":                    noSleepInTests,
		"skips have a reason":                  skipsHaveReason,
		"notes of what is to do name an issue": notesNameIssue,
		"panics only where listed":             panicsListed,
		"packages have a comment":              packageComments,
		"exported names have a comment":        exportedComments,
	}
}

func TestHouse(t *testing.T) {
	t.Parallel()

	h, err := open(".")
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

// open reads every Go file of the module whose root is dir. Nested modules and
// folders that Go passes over are left out.
func open(dir string) (house, error) {
	sources := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path == dir {
				return nil
			}
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			passedOver := name == "testdata" || name == "vendor" || name == "node_modules"
			if err == nil || passedOver || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		sources[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if err != nil {
		return house{}, fmt.Errorf("read the house: %w", err)
	}
	return parse(sources)
}

// TestRulesCanFail shows each rule a house that breaks it, and one that does
// not.
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
			h, err := parse(upright())
			if err != nil {
				t.Fatal(err)
			}
			if got := rule(h); len(got) > 0 {
				t.Errorf("found %q in a house that is in order", got)
			}
		})
	}
}

func TestFloorOf(t *testing.T) {
	t.Parallel()

	for pkg, want := range map[string]string{
		"internal/executor":              "3.0",
		"internal/executor/slack":        "3.2",
		"internal/executor/mcp/wire":     "3.2",
		"internal/executor/executortest": "3.1",
		"cmd/api":                        "8.1",
		".":                              "8.0",
		"internal/executors":             "none",
		"cmd":                            "none",
	} {
		got := "none"
		if f, ok := floorOf(pkg); ok {
			got = f.String()
		}
		if got != want {
			t.Errorf("floorOf(%q) = %s, want %s", pkg, got, want)
		}
	}
}
