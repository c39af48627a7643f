package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestNamesAreInferred(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for key, want := range map[string]string{
		"slack:chat.postMessage":              "slack.chat_message.post",
		"linear:createIssue":                  "linear.issue.create",
		"linear:issueUpdate":                  "linear.issue.update",
		"slack:SLACK_SEND_MESSAGE":            "slack.message.send",
		"notes:notes.create":                  "notes.notes.create",
		"countersign:countersign.note.create": "countersign.note.create",
		"files:write_file":                    "files.file.write",
		"files:list-directory_with/sizes":     "files.directory_with_sizes.list",
		"web:HTTPRequest":                     "web.http.request",
		"mail:send":                           "mail.mail.send",
		"weather:forecast":                    "weather.forecast.call",
		"a.b-c:get":                           "a_b_c.a_b_c.get",
		"evil:mail.message.send":              "evil.mail_message.send",
		"evil:发送":                             "evil.evil.call",
		"x9:" + strings.Repeat("a", 150):      "x9." + strings.Repeat("a", 100) + ".call",
	} {
		parsed, err := policy.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(tenanttest.Builtin(parsed.Source))
		s.List(parsed.Source, tenanttest.Tool(parsed.Action))
		found, ok := s.snapshot().Tool(parsed)
		if !ok || found.FullName.String() != want {
			t.Errorf("the full name of %s = %v, want %s", key, found, want)
		}
	}
}

func TestOperatorsDescribeTools(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	act := policy.Key{Source: "src", Action: "act"}
	describe := func(d catalog.Description) {
		s.Must(func(ctx context.Context, tx pgx.Tx) error { return catalog.DescribeTool(ctx, tx, s.Tenant, act, d) })
	}
	before := s.act()
	reversal := &catalog.Reversal{Tool: policy.Key{Source: "src", Action: "un:act"}, Args: json.RawMessage(`{"id": "$outputs/id"}`)}

	describe(catalog.Description{Name: catalog.FullName{Module: "crm", Action: "close"}, SideEffects: new([]string{"closes the deal"}), Reversal: reversal})
	described := s.act()
	describe(catalog.Description{SideEffects: new([]string{})})
	silent := s.act()
	describe(catalog.Description{})
	after := s.act()

	if before.FullName.String() != "src.act.call" || before.Reversible() || len(before.SideEffects) == 0 {
		t.Errorf("inferred = %s, reversible %t, %v", before.FullName, before.Reversible(), before.SideEffects)
	}
	if described.FullName.String() != "crm.act.close" || !described.Reversible() || !slices.Equal(described.SideEffects, []string{"closes the deal"}) {
		t.Errorf("described = %s, reversible %t, %v", described.FullName, described.Reversible(), described.SideEffects)
	}
	if described.Reversal.Tool != reversal.Tool || string(described.Reversal.Args) != string(reversal.Args) {
		t.Errorf("Reversal = %+v, want %+v", described.Reversal, reversal)
	}
	if len(silent.SideEffects) != 0 || silent.Reversal != nil {
		t.Errorf("an empty list of side effects = %v, and a reversal that was taken back %v", silent.SideEffects, silent.Reversal)
	}
	if diff := cmp.Diff(before.SideEffects, after.SideEffects); diff != "" || after.FullName != before.FullName {
		t.Errorf("what was taken back is inferred again (-want +got):\n%s", diff)
	}
}

// A headline by people holds for the definition that it was written for, and arguments
// stand in the order of the schema as the source lists it.
func TestHeadlinesEndWithTheDefinition(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	act := policy.Key{Source: "src", Action: "act"}
	list := func(schema string) {
		tool := tenanttest.Tool("act")
		tool.InputSchema = json.RawMessage(schema)
		s.List("src", tool)
	}
	args := json.RawMessage(`{"why":"x","count_of":2,"to":"ana@example.org"}`)
	const schema = `{"type":"object","properties":{"why":{},"to":{},"count_of":{}}}`
	list(schema)
	for template, want := range map[string]string{
		"":                     "to ana@example.org · why x · count_of 2",
		"Ask {/to} for {/why}": "Ask ana@example.org for x",
	} {
		s.Must(func(ctx context.Context, tx pgx.Tx) error {
			return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{Headline: template})
		})
		if got := s.act().Headline(args); got != want {
			t.Errorf("headline by %q = %s, want %s", template, got, want)
		}
	}
	if got := string(s.act().InputSchema); got != schema {
		t.Errorf("the schema is %s, want its order %s", got, schema)
	}
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{Headline: "Ask {/to}"})
	})
	list(`{"type":"object","properties":{"to":{},"why":{},"cc":{}}}`)
	if got, want := s.act().Headline(args), "to ana@example.org · why x · count_of 2"; got != want {
		t.Errorf("after drift = %s, want %s", got, want)
	}
	err := catalog.Description{Headline: "nothing"}.Validate()
	if broken, ok := errors.AsType[*envelope.InvalidError](err); !ok || broken.Fields[0].Pointer != "/headline" {
		t.Errorf("a template without arguments: %v", err)
	}
}

func TestDeclaredReversalIsStored(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	act := policy.Key{Source: "src", Action: "act"}
	list := func(declared *source.Reversal) *catalog.Reversal {
		tool := tenanttest.Tool("act")
		tool.Reversal = declared
		s.List("src", tool)
		return s.act().Reversal
	}
	describe := func(d catalog.Description) *catalog.Reversal {
		s.Must(func(ctx context.Context, tx pgx.Tx) error { return catalog.DescribeTool(ctx, tx, s.Tenant, act, d) })
		return s.act().Reversal
	}
	digest := s.act().Digest
	mine := &catalog.Reversal{Tool: policy.Key{Source: "other", Action: "undo"}, Args: json.RawMessage(`{"a": 1}`)}
	own := &catalog.Reversal{Tool: policy.Key{Source: "src", Action: "unact"}, Args: json.RawMessage(`{"id": "$outputs/id"}`)}
	declared := &source.Reversal{Tool: "unact", Args: own.Args}

	for _, step := range []struct {
		name string
		got  *catalog.Reversal
		want *catalog.Reversal
	}{
		{"declared", list(declared), own},
		{"set by an operator", describe(catalog.Description{Reversal: mine}), mine},
		{"listed again", list(declared), mine},
		{"left to the source", describe(catalog.Description{}), own},
		{"not declared any more", list(nil), nil},
	} {
		if diff := cmp.Diff(step.want, step.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	list(declared)
	if now := s.act(); !slices.Equal(now.Digest, digest) || now.Drifted() || !now.Reversible() {
		t.Errorf("a reversal changes the digest, or the tool is not reversible: %+v", now)
	}
}

func TestDeclaredReversalChangesTheVersion(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	version := func() (n int64) {
		s.Must(func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, "SELECT config_version FROM tenants WHERE tenant_id = $1", s.Tenant.String()).Scan(&n)
		})
		return n
	}
	tool := tenanttest.Tool("act")
	tool.Reversal = &source.Reversal{Tool: "unact"}
	before := version()

	s.List("src", tool)
	declared := version()
	s.List("src", tool)

	if declared <= before || version() != declared {
		t.Errorf("config_version = %d, %d when declared, %d when listed again; want it raised once", before, declared, version())
	}
}

func TestInvalidDescriptions(t *testing.T) {
	t.Parallel()
	args := func(text string) catalog.Description {
		return catalog.Description{Reversal: &catalog.Reversal{Tool: policy.Key{Source: "a", Action: "b"}, Args: json.RawMessage(text)}}
	}
	for name, test := range map[string]struct {
		of   catalog.Description
		want []string
	}{
		"words":             {catalog.Description{Name: catalog.FullName{Module: "a.b", Entity: "Ä", Action: "a b"}}, []string{"/action", "/entity", "/module"}},
		"an empty effect":   {catalog.Description{SideEffects: new([]string{"x", ""})}, []string{"/side_effects/1"}},
		"a hidden effect":   {catalog.Description{SideEffects: new([]string{"x\u200b"})}, []string{"/side_effects/0"}},
		"too many effects":  {catalog.Description{SideEffects: new(slices.Repeat([]string{"x"}, 21))}, []string{"/side_effects"}},
		"no object":         {args(`[]`), []string{"/reversal/args"}},
		"no JSON":           {args(`{`), []string{"/reversal/args"}},
		"a large template":  {args(`{"a":"` + strings.Repeat("x", 17000) + `"}`), []string{"/reversal/args"}},
		"references":        {args(`{"a":"$input/x","b":["$x",{"c/d":"$outputs.x"}],"e":"$inputs[x]","f":"$outputs/~2"}`), []string{"/reversal/args/a", "/reversal/args/b/0", "/reversal/args/b/1/c~1d", "/reversal/args/e", "/reversal/args/f"}},
		"a longer root":     {args(`{"a":"$inputsx"}`), []string{"/reversal/args/a"}},
		"what is all right": {args(`{"a":"$inputs","b":"$outputs/0/x/12","c":"$$inputs","d":"x $inputs/y","e":1}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			if invalid, ok := errors.AsType[*envelope.InvalidError](test.of.Validate()); ok {
				for _, f := range invalid.Fields {
					got = append(got, f.Pointer)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Validate() (-want +got):\n%s", diff)
			}
		})
	}
}
