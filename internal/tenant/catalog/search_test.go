package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	of := func(name, title, description, arguments string) source.Tool {
		properties := map[string]any{}
		for _, a := range strings.Fields(arguments) {
			properties[a] = true
		}
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		return source.Tool{Name: name, Title: title, Description: description, InputSchema: schema}
	}
	for source, tools := range map[string][]source.Tool{
		"mail":  {of("sendEmail", "Send an email", "Sends a message to people.", "to subject"), of("list_drafts", "Drafts", "Lists what was not sent.", "limit")},
		"slack": {of("chat.postMessage", "Post a message", "Writes into a channel.", "channel text")},
		"crm":   {of("contacts.create", "New contact", "Makes a contact.", "formatted_name emails"), of("Größe", "", "Maß für Größen.", "")},
		"evil": {of("free", "", strings.Repeat("send email send emails message contact ", 500), ""),
			of("de\u0301ja<script>alert(1)</script>", "", "x\u200by", "")},
	} {
		s.Put(tenanttest.Builtin(source))
		s.List(source, tools...)
	}
	snap := s.snapshot()
	all := snap.Tools()

	for query, want := range map[string][]string{
		"send email":             {"mail:sendEmail", "evil:free", "slack:chat.postMessage", "mail:list_drafts", "crm:contacts.create"},
		"emails":                 {"mail:sendEmail", "evil:free", "slack:chat.postMessage", "mail:list_drafts", "crm:contacts.create"},
		"postmess":               {},
		"post":                   {"slack:chat.postMessage", "mail:sendEmail", "evil:free", "mail:list_drafts", "crm:contacts.create"},
		"draft":                  {"mail:list_drafts", "crm:contacts.create", "slack:chat.postMessage"},
		"channel":                {"slack:chat.postMessage"},
		"crm.contacts.create":    {"crm:contacts.create"},
		"slack:chat.postMessage": {"slack:chat.postMessage", "mail:sendEmail", "evil:free"},
		"FREE":                   {"evil:free"},
		"größe":                  {"crm:Größe"},
		"xy":                     {"evil:de\u0301ja<script>alert(1)</script>"},
		"se":                     {},
		"!?":                     {},
		"":                       {},
		"nothing of this":        {},
	} {
		got := keys(snap.Search(all, query))
		if query == "slack:chat.postMessage" || query == "crm.contacts.create" {
			got, want = got[:1], want[:1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Search(%q) (-want +got):\n%s", query, diff)
		}
	}
	if got := keys(snap.Search(all[:1], "email")); len(got) > 1 {
		t.Errorf("Search() among one tool finds %v", got)
	}
	if got := snap.Search(all, strings.Repeat("send ", 10_000)+strings.Repeat("x", 100_000)); len(got) == 0 {
		t.Error("Search() of a long text finds nothing")
	}
}

func FuzzSearch(f *testing.F) {
	s := newFixture(f)
	var tools []source.Tool
	for i := range 50 {
		tools = append(tools, tenanttest.Tool(fmt.Sprintf("tool_%d", i)))
	}
	s.List("src", tools...)
	snap := s.snapshot()
	all := snap.Tools()
	f.Add("tool 7")
	f.Add("\xff\u200b")
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, found := range snap.Search(all, text) {
			if seen[found.Key.String()] {
				t.Errorf("Search(%q) finds %s twice", text, found.Key)
			}
			seen[found.Key.String()] = true
		}
	})
}
