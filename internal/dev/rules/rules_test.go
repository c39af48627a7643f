package rules_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// A layer is where a package stands: a level, and a step on it. A package
// imports only from below.
type layer struct{ level, step int }

func (f layer) below(g layer) bool {
	return f.level < g.level || f.level == g.level && f.step < g.step
}

func (f layer) String() string { return fmt.Sprintf("%d.%d", f.level, f.step) }

// layers lists every package. A line ends in "/..." for all packages
// below a folder; the longest line that matches a package holds. A new package
// gets a line here, above everything it imports and below everything that
// imports it. A family takes a step for each of its members that others of it
// import.
func layers() map[string]layer {
	return map[string]layer{
		"db":                  {1, 0},
		"internal/fault":      {1, 0},
		"internal/listen":     {1, 1},
		"internal/telemetry":  {1, 2},
		"internal/config":     {1, 2},
		"internal/safehttp":   {1, 0},
		"internal/slot":       {1, 0},
		"internal/coalesce":   {1, 0},
		"internal/encryption": {1, 0},
		"internal/visible":    {1, 0},
		"schemas":             {1, 0},
		"web":                 {1, 0},

		"envelope/internal/...":      {2, 0},
		"envelope":                   {2, 1},
		"client/wire":                {2, 2},
		"client":                     {2, 3},
		"internal/check":             {2, 2},
		"internal/link":              {2, 2},
		"internal/schema":            {2, 3},
		"internal/postgres/dbsqlc":   {2, 2},
		"internal/postgres":          {2, 3},
		"internal/postgres/embedded": {2, 4},
		"internal/postgres/dbtest":   {2, 5},

		"internal/mail/mailbox":     {2, 0},
		"internal/mail/message/...": {2, 0},
		"internal/mail/message":     {2, 1},
		"internal/mail/listing":     {2, 1},
		"internal/mail/watch":       {2, 1},
		"internal/mail/quota":       {2, 1},
		"internal/mail/...":         {2, 2},
		"internal/mail/mcpmail":     {3, 3},

		"internal/audit":             {3, 0},
		"internal/jsonref":           {3, 0},
		"internal/redact":            {3, 0},
		"internal/source":            {3, 0},
		"internal/source/sourcetest": {3, 1},
		"internal/source/rest":       {3, 1},
		"internal/source/breaker":    {3, 1},
		"internal/source/...":        {3, 2},

		"internal/tenant/policy":     {4, 0},
		"internal/tenant/contact":    {4, 0},
		"internal/tenant/quiethours": {4, 0},
		"internal/tenant/document":   {4, 0},
		"internal/tenant/pause":      {4, 1},
		"internal/tenant/limits":     {4, 2},
		"internal/tenant/...":        {4, 3},
		"internal/tenant/settings":   {4, 4},
		"internal/tenant/tenanttest": {4, 4},
		"internal/action/preflight":  {4, 3},
		"internal/action/reference":  {4, 0},
		"internal/action/decision":   {4, 5},
		"internal/source/connect":    {4, 5},

		"internal/action/intake":            {5, 0},
		"internal/action/outbox":            {5, 0},
		"internal/action/approval":          {5, 1},
		"internal/action/deadletter":        {5, 1},
		"internal/action/reversal":          {5, 1},
		"internal/action/outbox/outboxtest": {5, 2},
		"internal/action/proposal":          {5, 2},
		"internal/action/reconcile":         {5, 2},
		"internal/action/snapshot":          {5, 3},
		"internal/action/workflow":          {5, 2},
		"internal/action/subscription":      {5, 2},

		"internal/insight/...":    {6, 0},
		"internal/insight/doctor": {6, 1},

		"internal/worker":              {7, 0},
		"internal/triage/signal":       {4, 0},
		"internal/triage/corpus":       {4, 0},
		"internal/triage/measure":      {4, 0},
		"internal/triage/documenttest": {4, 0},
		"internal/triage/classify":     {4, 1},
		"internal/triage/decide":       {4, 2},
		"internal/triage/plan":         {4, 3},
		"internal/triage/thread":       {4, 3},
		"internal/triage/cascade":      {4, 3},
		"internal/triage/draft":        {4, 3},
		"internal/triage/evaluate":     {4, 4},

		"internal/triage/model":           {4, 0},
		"internal/triage/model/modeltest": {4, 1},

		"internal/triage/account": {7, 0},
		"internal/triage/inspect": {7, 1},
		"internal/triage/lease":   {7, 1},
		"internal/triage/reader":  {7, 2},
		"internal/triage/asker":   {7, 3},
		"internal/triage/engine":  {7, 4},
		"internal/triage/process": {7, 5},
		"internal/triage/...":     {7, 6},

		"internal/server/openapi":             {8, 0},
		"internal/server/access":              {8, 0},
		"internal/server/openapi/openapitest": {8, 1},
		"internal/server/broker":              {8, 1},
		"internal/server/rest/request":        {8, 2},
		"internal/server/rest/actions":        {8, 3},
		"internal/server/rest/...":            {8, 4},
		"internal/server/rest":                {8, 5},
		"internal/server/...":                 {8, 6},

		"internal/dev":         {8, 7},
		"internal/dev/rules":   {8, 7},
		"internal/cli/login":   {8, 7},
		"internal/cli/command": {8, 8},
		"internal/cli/actions": {8, 9},
		"internal/cli/...":     {8, 10},
		"internal/cli":         {8, 11},

		".":                        {9, 0},
		"bench":                    {9, 5},
		"bench/chaos":              {9, 5},
		"bench/chaos/database":     {9, 3},
		"bench/chaos/counting":     {9, 2},
		"bench/chaos/...":          {9, 1},
		"bench/hostile":            {9, 3},
		"bench/rolling":            {9, 5},
		"bench/machine":            {9, 1},
		"bench/mailbox":            {9, 1},
		"bench/application":        {9, 1},
		"bench/process":            {9, 1},
		"cmd/...":                  {9, 1},
		"examples/...":             {9, 1},
		"tools/...":                {9, 1},
		"deploy/images":            {9, 1},
		"deploy/kubetools":         {9, 1},
		"deploy/test/rendered":     {9, 1},
		"deploy/test/rendered/...": {9, 2},
		"deploy/test/kubetest":     {9, 1},
		"deploy/test/...":          {9, 3},
		"internal/postgres/withpg": {9, 1},
	}
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
		"client/wire":               "is one representation a type, without code",
		"internal/server/mcpserver": "is one protocol",
		"internal/tenant/identity":  "issues and checks every kind of credential",
		"internal/tenant/catalog":   "is one document, its store and its search",
		"internal/triage/classify":  "is the embedded models and their training",
		"internal/triage/signal":    "is rules over a message, one a file",
		"internal/worker":           "is the pipeline and its jobs",
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

// rules are what every file of the module keeps to. Each returns what breaks
// it, one line for each place.
func rules() map[string]func(repo) []string {
	return map[string]func(repo) []string{
		"imports only from lower layers":       downwardImports,
		"no circles":                           noCircles,
		"adapters stand alone":                 adaptersIndependent,
		"only store files import dbsqlc":       onlyStoresImportSQL,
		"test helpers only in tests":           helpersOnlyInTests,
		"cmd only wires":                       cmdOnlyWires,
		"packages are small":                   packagesAreSmall,
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

// TestRulesCanFail shows each rule a module that breaks it, and one that does
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
		"internal/source":            "3.0",
		"internal/source/slack":      "3.2",
		"internal/source/mcp/wire":   "3.2",
		"internal/source/sourcetest": "3.1",
		"cmd/api":                    "9.1",
		".":                          "9.0",
		"internal/sources":           "none",
		"cmd":                        "none",
	} {
		got := "none"
		if f, ok := layerOf(pkg); ok {
			got = f.String()
		}
		if got != want {
			t.Errorf("layerOf(%q) = %s, want %s", pkg, got, want)
		}
	}
}
