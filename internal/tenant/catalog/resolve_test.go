package catalog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// TestResolveByEveryKindOfName resolves names of three kinds, with sources that
// try to take each other's names.
func TestResolveByEveryKindOfName(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	named := func(src string, names ...string) {
		s.Put(tenanttest.Builtin(src))
		var tools []source.Tool
		for _, name := range names {
			tools = append(tools, tenanttest.Tool(name))
		}
		s.List(src, tools...)
	}
	named("mail", "sendMessage", "ping", "mail.message.read")
	named("evil", "mail:sendMessage", "mail.message.send", "ping", "single")
	named("my_app", "item.get")
	named("my.app", "item.get")
	off := tenanttest.Builtin("off")
	off.Enabled = false
	s.Put(off)
	s.List("off", tenanttest.Tool("single"), tenanttest.Tool("dark"))
	careful := tenanttest.Builtin("careful")
	careful.Quarantine = true
	s.Put(careful)
	s.List("careful", tenanttest.Tool("first"))
	s.List("careful", tenanttest.Tool("first"), tenanttest.Tool("single"), tenanttest.Tool("fresh"))
	failing := tenanttest.Builtin("failing")
	s.Put(failing)
	s.List("failing", tenanttest.Tool("pending"))
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListError(ctx, tx, s.Tenant, "failing", "it does not answer")
	})
	snap := s.snapshot()

	for name, test := range map[string]struct {
		tool envelope.Tool
		want string
	}{
		"source and name":                       {envelope.Tool{Source: "mail", Name: "ping"}, "mail:ping"},
		"app and name":                          {envelope.Tool{ComposioApp: "mail", Name: "ping"}, "mail:ping"},
		"a key":                                 {envelope.Tool{Name: "evil:single"}, "evil:single"},
		"a key that another tool is called":     {envelope.Tool{Name: "mail:sendMessage"}, "mail:sendMessage"},
		"that other tool, by its source":        {envelope.Tool{Source: "evil", Name: "mail:sendMessage"}, "evil:mail:sendMessage"},
		"that other tool, by its key":           {envelope.Tool{Name: "evil:mail:sendMessage"}, "evil:mail:sendMessage"},
		"a bare name":                           {envelope.Tool{Name: "sendMessage"}, "mail:sendMessage"},
		"a bare name with dots":                 {envelope.Tool{Name: "mail.message.read"}, "mail:mail.message.read"},
		"a full name that is a bare one":        {envelope.Tool{Name: "mail.message.send"}, "required: several tools have this name; give it as source:name: evil:mail.message.send, mail:sendMessage"},
		"a full name":                           {envelope.Tool{Name: "failing.pending.call"}, "failing:pending"},
		"a full name of two":                    {envelope.Tool{Name: "my_app.item.get"}, "required: several tools have this name; give it as source:name: my.app:item.get, my_app:item.get"},
		"a bare name of two":                    {envelope.Tool{Name: "ping"}, "required: several tools have this name; give it as source:name: evil:ping, mail:ping"},
		"one beside quarantine and darkness":    {envelope.Tool{Name: "single"}, "evil:single"},
		"one in quarantine only":                {envelope.Tool{Name: "fresh"}, "careful:fresh"},
		"one of a source that cannot be listed": {envelope.Tool{Name: "pending"}, "failing:pending"},
		"one of a source that is off":           {envelope.Tool{Name: "dark"}, "unknown_tool"},
		"its key":                               {envelope.Tool{Name: "off:dark"}, "unknown_tool"},
		"its source":                            {envelope.Tool{Source: "off", Name: "dark"}, "unknown_source"},
		"no tool of a source":                   {envelope.Tool{Source: "mail", Name: "nothing"}, "unknown_tool"},
		"a full name with its source":           {envelope.Tool{Source: "mail", Name: "mail.message.send"}, "unknown_tool"},
		"no tool":                               {envelope.Tool{Name: "nothing"}, "unknown_tool"},
		"nothing before the colon":              {envelope.Tool{Name: ":ping"}, "unknown_tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := snap.Resolve(test.tool, nil)

			got := ""
			if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok {
				got = string(invalid.Fields[0].Rule)
				if got == "required" {
					got += ": " + invalid.Fields[0].Message
				}
			} else if err == nil {
				got = found.Key.String()
			}
			if got != test.want {
				t.Errorf("Resolve() = %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func keys(tools []*catalog.Tool) []string {
	found := []string{}
	for _, t := range tools {
		found = append(found, t.Key.String())
	}
	return found
}
