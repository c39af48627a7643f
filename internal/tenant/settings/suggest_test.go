package settings_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestSuggestions(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Put(tenanttest.Builtin("mail"))
	s.List("mail", tenanttest.Tool("send_mail"), tenanttest.Tool("drop_mail"))
	s.mode("", "*", envelope.ModeAllow)
	s.mode("", "mail:drop_mail", envelope.ModeDeny)
	snap := s.snapshot()
	suggest := func(by settings.Viewer, named envelope.Tool) string {
		by.Now = time.Now()
		_, err := snap.Resolve(named, by.Tools)
		if err == nil {
			t.Fatalf("there is a tool %+v", named)
		}
		invalid, ok := errors.AsType[*envelope.InvalidError](snap.Suggest(by).Tool(named, err))
		if !ok {
			t.Fatalf("the error for %+v is of another kind", named)
		}
		_, end, _ := strings.Cut(invalid.Fields[0].Message, "did you mean ")
		return end
	}
	agent, person := settings.Viewer{Lists: settings.ListsUsable}, settings.Viewer{Lists: settings.ListsAll}
	narrow := settings.Viewer{Lists: settings.ListsAll, Tools: []string{"mail:drop_mail"}}
	for _, test := range []struct {
		by    settings.Viewer
		named envelope.Tool
		want  string
	}{
		{agent, envelope.Tool{Source: "mail", Name: "sendmail"}, `"mail:send_mail"?`},
		{agent, envelope.Tool{ComposioApp: "mail", Name: "sendmail"}, `"mail:send_mail"?`},
		{agent, envelope.Tool{Name: "mial:send_mail"}, `"mail:send_mail"?`},
		{agent, envelope.Tool{Name: "sendmail"}, `"send_mail"?`},
		{agent, envelope.Tool{Name: "dropmail"}, ""},
		{person, envelope.Tool{Name: "dropmail"}, `"drop_mail"?`},
		{narrow, envelope.Tool{Name: "sendmail"}, ""},
		{narrow, envelope.Tool{Name: "send_mail"}, ""},
		{narrow, envelope.Tool{Name: "dropmail"}, `"drop_mail"?`},
		{settings.Viewer{}, envelope.Tool{Name: "sendmail"}, ""},
		{agent, envelope.Tool{Name: "nothing like it"}, ""},
	} {
		if got := suggest(test.by, test.named); got != test.want {
			t.Errorf("%+v by %+v: suggested are %q, want %q", test.named, test.by, got, test.want)
		}
	}
}

// TestSuggestionsAreBounded checks the maximum number of names per request that
// are compared with the catalog.
func TestSuggestionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	suggest, found := s.snapshot().Suggest(settings.Viewer{Lists: settings.ListsAll}), 0

	for i := range 1000 {
		if suggest.Unknown(fmt.Sprintf("src:ac%d", i%10)) != nil {
			found++
		}
	}

	if found == 0 || found > 50 {
		t.Errorf("%d of 1000 unknown names have a suggestion, want some and at most 50", found)
	}
}
