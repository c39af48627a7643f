package rules_test

import (
	"fmt"
	"strings"
)

// sample is a module that breaks a rule, and the expected message.
type sample struct {
	want    string
	sources map[string]string
}

// one is a module of one file.
func one(name, text, want string) sample {
	return sample{want: want, sources: map[string]string{name: text}}
}

// importing is a module of one file that imports packages of the module.
func importing(name, want string, packages ...string) sample {
	text := "package x\n"
	for _, pkg := range packages {
		text += fmt.Sprintf("import _ %q\n", module+"/"+pkg)
	}
	return one(name, text, want)
}

// numbered returns names of packages.
func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint(prefix, "p", i))
	}
	return names
}

// violations breaks each rule, once for each way in which it can be broken.
func violations() map[string][]sample {
	return map[string][]sample{
		"imports only from lower layers": {
			importing("internal/tenant/contact/contact.go", "internal/tenant/contact (layer 5) imports internal/action/outbox (layer 7)", "internal/action/outbox"),
			importing("internal/triage/account/open.go", "imports internal/connection (layer 6)", "internal/connection"),
			importing("internal/action/preflight/quiet_test.go", "imports internal/worker", "internal/worker"),
			importing("internal/novel/novel.go", "internal/novel: package has no layer; add its folder"),
		},
		"no circles": {{
			want: "internal/action/preflight → internal/tenant/policy → internal/action/preflight",
			sources: map[string]string{
				"internal/action/preflight/quiet.go": "package preflight\nimport _ \"" + module + "/internal/tenant/policy\"\n",
				"internal/tenant/policy/rules.go":    "package policy\nimport _ \"" + module + "/internal/action/preflight\"\n",
			},
		}},
		"packages import few others": {
			importing("internal/worker/worker.go", "internal/worker: imports 23 packages", numbered("internal/tenant/", maxImports+1)...),
		},
		"mail and triage stand apart": {
			importing("internal/mail/imap/imap.go", "imports internal/postgres, which mailUses does not list", "internal/postgres"),
			importing("internal/triage/reader/reader.go", "imports internal/tenant/limits, which mailUses does not list", "internal/tenant/limits"),
			importing("internal/action/outbox/store.go", "internal/action/outbox imports internal/triage/plan, and usesMail does not list it", "internal/triage/plan"),
		},
		"adapters stand alone": {
			importing("internal/source/slack/post.go", "imports the adapter internal/source/linear", "internal/source/linear"),
			importing("internal/source/slack/post_test.go", "imports the adapter internal/source/mcp/wire", "internal/source/mcp/wire"),
			importing("internal/source/slack/post.go", "adapters do not see the database", "internal/postgres/dbsqlc"),
			one("internal/source/slack/post.go", "package slack\nimport _ \"github.com/jackc/pgx/v5\"\n", "imports github.com/jackc/pgx/v5"),
		},
		"only store files import dbsqlc": {
			importing("internal/action/outbox/claim.go", "internal/action/outbox/claim.go:2: only store.go", "internal/postgres/dbsqlc"),
			importing("internal/action/outbox/restore.go", "only store.go", "internal/postgres/dbsqlc"),
		},
		"test helpers only in tests": {
			importing("internal/action/outbox/claim.go", "internal/postgres/dbtest is for tests alone", "internal/postgres/dbtest"),
			one("internal/action/outbox/claim.go", "package outbox\nimport _ \"testing\"\n", "testing is for tests"),
		},
		"outgoing HTTP goes through safehttp": {
			one("internal/source/slack/post.go", "package slack\nimport \"net/http\"\nvar c = &http.Client{}\n", "http.Client: outgoing connections"),
			one("internal/source/slack/post.go", "package slack\nimport \"net/http\"\nfunc f() { _ = http.DefaultTransport }\n", "http.DefaultTransport"),
			one("internal/source/slack/post.go", "package slack\nimport \"net\"\nfunc f() { _, _ = net.Dial(\"\", \"\") }\n", "net.Dial"),
		},
		"cmd only wires": {
			one("cmd/api/main.go", "package main\n"+strings.Repeat("\n", maxWiring), "151 lines"),
			one("cmd/api/serve/serve.go", "package serve\n", "package serve under cmd is not main"),
			one("cmd/api/main.go", "package main\ntype clock interface{ Now() int }\n", "declares no interface"),
		},
		"packages are small": {
			one("internal/action/preflight/gate.go", "package preflight\n"+strings.Repeat("\n", maxPackage), "internal/action/preflight: 2501 lines"),
		},
		"files and functions are short": {
			one("internal/action/preflight/gate.go", "package preflight\n"+strings.Repeat("\n", maxFile), "gate.go: 451 lines"),
			one("internal/action/preflight/gate.go", "package preflight\nfunc f() {"+strings.Repeat("\n", maxFunction)+"}\n", "gate.go:2: f has 71 lines"),
		},
		"rules take the time": {
			one("internal/action/preflight/gate.go", "package preflight\nfunc f() { _ = time.Now() }\n", "gate.go:2: time.Now"),
			one("internal/tenant/limits/gate.go", "package limits\nvar clock = time.Now\n", "gate.go:2: time.Now"),
			one("envelope/gate.go", "package envelope\nfunc f(at time.Time) { _ = time.Since(at) }\n", "gate.go:2: time.Since"),
		},
		"names say what is inside": {
			one("internal/action/outbox/helpers.go", "package outbox\n", `"helpers" does not say`),
			one("internal/utils/text_test.go", "package utils\n", `"utils" does not say`),
		},
		"servers have deadlines": {
			one("internal/dev/serve.go", "package dev\nvar s = &http.Server{Addr: \"x\"}\n", "serve.go:2: the server has no ReadTimeout"),
			one("cmd/api/main.go", "package main\nfunc f() { _ = http.ListenAndServe(\"x\", nil) }\n", "main.go:2: http.ListenAndServe has no deadlines"),
		},
		"no init": {one("internal/action/preflight/gate.go", "package preflight\nfunc init() {}\n", "gate.go:2")},
		"no mutable package variables": {
			one("internal/action/preflight/gate.go", "package preflight\nvar n int\nfunc f() { n++ }\n", "gate.go:3: package variable n is changed"),
			one("internal/action/preflight/gate.go", "package preflight\nvar m = map[string]int{}\nfunc f() { m[\"a\"] = 1 }\n", "m is changed"),
			one("internal/action/preflight/gate.go", "package preflight\nvar s struct{ p *int }\nfunc f() { *(s.p) = 1 }\n", "s is changed"),
			one("internal/action/preflight/gate.go", "package preflight\nvar n int\nfunc f() *int { return &n }\n", "n is changed"),
			one("internal/action/preflight/gate.go", "package preflight\nvar n int\nfunc f() { for n = range 3 {} }\n", "n is changed"),
			one("internal/action/preflight/gate.go", "package preflight\nimport \"sync\"\nvar mu sync.Mutex\n", "mu can change"),
			one("internal/action/preflight/gate.go", "package preflight\nimport \"sync\"\nvar pool = sync.Pool{}\n", "pool can change"),
			one("internal/action/preflight/gate.go", "package preflight\nvar c = make(chan int)\n", "c can change"),
			one("internal/action/preflight/gate.go", "package preflight\nvar Limit = 3\n", "could assign the variable Limit"),
			{want: "n is changed", sources: map[string]string{
				"internal/action/preflight/gate.go":  "package preflight\nvar n int\n",
				"internal/action/preflight/quiet.go": "package preflight\nimport \"fmt\"\nfunc f() { fmt.Println(); n = 1 }\n",
			}},
		},
		"no sleep in tests": {one("internal/action/preflight/gate_test.go", "package preflight\nfunc f() { time.Sleep(1) }\n", "gate_test.go:2")},
		"skips have a reason": {
			one("internal/action/preflight/gate_test.go", "package preflight\nfunc f() { t.Skip() }\n", "gate_test.go:2"),
			one("internal/action/preflight/gate_test.go", "package preflight\nfunc f() { b.SkipNow() }\n", "gate_test.go:2"),
		},
		"notes of what is to do name an issue": {
			one("internal/action/preflight/gate.go", "package preflight\n// TO"+"DO: later\n", "gate.go:2"),
			one("internal/action/preflight/gate.go", "package preflight\n/* FIX"+"ME */\n", "gate.go:2"),
		},
		"panics only where listed": {one("internal/action/preflight/gate.go", "package preflight\nfunc f() { panic(1) }\n", "gate.go:2")},
		"packages have a comment": {
			one("internal/action/preflight/gate.go", "package preflight\n", "internal/action/preflight: package has no comment"),
			{want: "more than one comment", sources: map[string]string{
				"internal/action/preflight/gate.go":  "// Package gate guards.\npackage preflight\n",
				"internal/action/preflight/quiet.go": "// Package gate is quiet.\npackage preflight\n",
			}},
		},
		"comments say more than the name": {
			one("internal/action/preflight/quiet.go", "package preflight\n// ListTools lists the tools.\nfunc ListTools() {}\n", "comment of ListTools"),
			one("internal/action/preflight/quiet.go", "package preflight\n// QuietHours are quiet hours.\ntype QuietHours struct{}\n", "comment of QuietHours"),
		},
		"names and comments use plain words": {
			one("internal/action/preflight/season.go", "package preflight\n", `"season" is a metaphor`),
			one("internal/action/preflight/quiet.go", "package preflight\nfunc openSeason() {}\n", "openSeason"),
			one("internal/action/preflight/quiet.go", "package preflight\nfunc f() { seasons := 1; _ = seasons }\n", "seasons"),
			one("internal/action/preflight/quiet.go", "package preflight\n// The season keeps what failed.\n", "quiet.go:2: comment"),
		},
		"no directives for linters": {
			one("internal/action/preflight/quiet.go", "package preflight\nvar x = 1 //no"+"lint:unused // reason\n", "quiet.go:2"),
		},
		"exported names have a comment": {
			one("internal/action/preflight/gate.go", "package preflight\nfunc Check() {}\n", "exported Check"),
			one("internal/action/preflight/gate.go", "package preflight\ntype T[A any] struct{}\nfunc (*T[A]) Do() {}\n", "exported Do"),
			one("internal/action/preflight/gate.go", "package preflight\ntype Gate struct{}\n", "exported Gate"),
			one("internal/action/preflight/gate.go", "package preflight\nconst Limit = 1\n", "exported Limit"),
		},
	}
}

// conforming is a module that keeps every rule, and comes near to breaking many.
func conforming() map[string]string {
	return map[string]string{
		"cmd/api/main.go": "// Command api serves.\npackage main\nimport _ \"" + module + "/internal/api\"\nfunc main() {}\n",
		"internal/server/rest/api.go": "// Package api answers.\npackage api\n" +
			"import _ \"" + module + "/internal/action/preflight\"\n",
		"internal/action/preflight/gate.go": `// Package gate guards.
package preflight

import (
	"errors"
	"regexp"
)

// ErrShut is returned by a gate that is shut.
var ErrShut = errors.New("shut")

var pattern = regexp.MustCompile("a")

var names = map[string]int{"a": 1}

// The limits.
const (
	Low  = 1
	High = 2
)

type gate struct{ n int }

func (g *gate) Open() { names := 1; names++; g.n = names }

// Check reports whether the gate is open. TO` + `DO(#12): check more, until the next release.
func Check() bool { return pattern.MatchString("a") && names["a"] == 1 }
`,
		"internal/action/preflight/gate_test.go": "package preflight_test\n" +
			"import (\n\t\"testing\"\n\t_ \"" + module + "/internal/postgres/dbtest\"\n\t_ \"" + module + "/internal/tenant/policy\"\n)\n" +
			"func TestIt(t *testing.T) { t.Skip(\"no network here\"); panic(1) }\n",
		"internal/action/outbox/store.go":     "// Package outbox keeps.\npackage outbox\nimport _ \"" + module + "/internal/postgres/dbsqlc\"\n",
		"internal/postgres/dbsqlc/models.go":  "// Code generated by sqlc. DO NOT EDIT.\n\npackage dbsqlc\n\ntype Row struct{}\n",
		"internal/postgres/dbtest/cluster.go": "// Package dbtest helps.\npackage dbtest\nimport \"sync\"\nvar mu sync.Mutex\nfunc f() { mu = sync.Mutex{}; panic(1) }\n",
		"internal/source/mcp/wire/wire.go":    "// Package wire frames.\npackage wire\n",
		"internal/source/mcp/mcp_test.go":     "package mcp_test\nimport _ \"" + module + "/internal/source/sourcetest\"\n",
		"internal/worker/poll_test.go":        "package worker_test\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\nfunc f() { synctest.Wait(); time.Sleep(1) }\n",
	}
}
