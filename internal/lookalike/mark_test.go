package lookalike_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// marks returns the marks of arguments in words, for people who know some names.
func marks(t *testing.T, args string, known ...string) []string {
	t.Helper()
	index := make(map[string][]lookalike.Known)
	for _, text := range known {
		raw, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range lookalike.Names(raw) {
			n.Bare = false
			for name, keys := range n.Stored() {
				for _, key := range keys {
					index[key] = append(index[key], lookalike.Known{Name: name})
				}
			}
		}
	}
	found := []string{}
	for _, n := range lookalike.Names(json.RawMessage(args)) {
		var near []lookalike.Known
		for _, key := range n.Keys() {
			near = append(near, index[key]...)
		}
		if m, is := lookalike.Check(n, near); is {
			found = append(found, m.Name.Pointer+" "+m.Text(true))
		}
	}
	return found
}

func TestCheck(t *testing.T) {
	t.Parallel()
	known := []string{"ana@example.org", "bob@invoices.example", "eve@gmail.com", "bo@acme-tools.com", "https://wiki.initech.io/x"}
	for args, want := range map[string][]string{
		`{"to":"ana@аpple.com"}`:                                     {"/to looks like apple.com, which is well known; differs in а (Cyrillic)"},
		`{"to":"ana@xn--pple-43d.com"}`:                              {"/to looks like apple.com, which is well known; differs in а (Cyrillic)"},
		`{"url":"see https://www.paypa1.com:443/login."}`:            {"/url looks like paypal.com, which is well known; differs in “1” for “l”"},
		`{"to":["ana@example.org","ana@examp1e.org"]}`:               {"/to/1 looks like example.org, which is known; differs in “1” for “l”"},
		`{"to":"ana@exarnple.org"}`:                                  {"/to looks like example.org, which is known; differs in “rn” for “m”"},
		`{"to":"bob@invoice.example"}`:                               {"/to resembles invoices.example, which is known; differs in a missing “s”"},
		`{"to":"bob@invioces.example"}`:                              {"/to resembles invoices.example, which is known; differs in “io” for “oi”"},
		`{"to":"bo@acme-tools.co"}`:                                  {"/to resembles acme-tools.com, which is known; differs in a missing “m”"},
		`{"to":"eve@gmial.com"}`:                                     {"/to resembles gmail.com, which is well known; differs in “ia” for “ai”"},
		`{"to":"еve@gmail.com"}`:                                     {"/to looks like eve@gmail.com, which is known; differs in е (Cyrillic)"},
		`{"to":"eva@gmail.com"}`:                                     {},
		`{"to":"ana@example.оrg"}`:                                   {"/to looks like example.org, which is known; differs in о (Cyrillic)"},
		"{\"to\":\"an\u200ba@example.org\"}":                         {`/to has invisible characters: an\u{200B}a@example.org`},
		"{\"to\":\"ana@exam\u202eple.org\"}":                         {`/to has invisible characters: ana@exam\u{202E}ple.org`},
		`{"to":"\"ana@example.org\" <mal@evil.example>"}`:            {"/to follows another address: ana@example.org"},
		`{"to":"Ana <ana@example.org>, Bob <bob@example.org>"}`:      {},
		`{"to":"ana@example.org <ana@example.org>"}`:                 {},
		`{"u":"https://example.org@evil.example/x"}`:                 {"/u follows another address: example.org"},
		`{"u":"https://example.org.evil.example/x"}`:                 {"/u begins with example.org, which is known, and belongs to evil.example"},
		`{"u":"https://paypal.com.evil.example/x"}`:                  {"/u begins with paypal.com, which is well known, and belongs to evil.example"},
		`{"to":"mаl@evil.example"}`:                                  {"/to mixes alphabets: а (Cyrillic)"},
		`{"domain":"wiki.initeсh.io"}`:                               {"/domain looks like initech.io, which is known; differs in с (Cyrillic)"},
		`{"аdmin@example.org":{"ana@examplе.org":1}}`:                {"/аdmin@example.org mixes alphabets: а (Cyrillic)", "/аdmin@example.org/ana@examplе.org looks like example.org, which is known; differs in е (Cyrillic)"},
		`{"to":"ana@mail.example.org","cc":"x@example.net"}`:         {},
		`{"to":"почта@почта.рф","b":"info@東京.jp","c":"a@müller.de"}`: {},
		`{"file":"report.md","v":"1.2.3","ip":"10.0.0.1:80"}`:        {},
		`[1]`:      {},
		`{"to":"`:  {},
		`"@.@..@"`: {},
	} {
		if got := marks(t, args, known...); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", args, got, want)
		}
	}
}

// TestCheckOfWronglyKnown checks that a name of other letters stays marked after a person
// approved it, and that the name that it imitates is not.
func TestCheckOfWronglyKnown(t *testing.T) {
	t.Parallel()
	if got := marks(t, `["a@exаmple.org"]`, "a@exаmple.org", "a@example.org"); len(got) != 1 {
		t.Errorf("a known look-alike has the marks %q", got)
	}
	if got := marks(t, `["a@example.org"]`, "a@exаmple.org"); len(got) != 0 {
		t.Errorf("the imitated domain has the marks %q", got)
	}
	if got := marks(t, `["a@northwind.example","a@northwinds.example"]`, "b@northwind.example", "b@northwinds.example"); len(got) != 0 {
		t.Errorf("two known domains have the marks %q", got)
	}
}

func TestTextWithoutTheKnownName(t *testing.T) {
	t.Parallel()
	n := lookalike.Names(json.RawMessage(`["ana@examp1e.org"]`))[0]
	m, _ := lookalike.Check(n, []lookalike.Known{{Name: "example.org"}})
	if got := m.Text(false); strings.Contains(got, "example.org") || !strings.Contains(got, "looks like an address, which is known") {
		t.Errorf("Text(false) = %q", got)
	}
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("a@b.cc ", 100_000), strings.Repeat("@", 300_000), strings.Repeat("<a@b.c ", 100_000), strings.Repeat("https://", 50_000), strings.Repeat("а", 200_000) + "@b.cc"} {
		raw, err := json.Marshal(map[string]string{"x": text})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range lookalike.Names(raw) {
			lookalike.Check(n, nil)
			n.Keys()
		}
		if got := len(lookalike.Names(raw)); got > 1000 {
			t.Errorf("%d names", got)
		}
	}
}

// TestWarning checks that a name is found behind hundreds of harmless ones, and that the
// line stays short whatever the names are.
func TestWarning(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`"ana@example.org",`, 900)
	hidden := `{"` + strings.Repeat("\u200b", 100) + `a@example.org":1}`
	for args, want := range map[string]string{
		`{"to":["ana@example.org"]}`:                           "",
		`{"to":[[{"cc":[` + many + `"bo@аpple.com"]}]]}`:       " · ⚠ bo@аpple.com looks like apple.com, which is well known; differs in а (Cyrillic)",
		`["a@paypa1.com","b@paypa1.com","c@xn--pple-43d.com"]`: " · ⚠ a@paypa1.com looks like paypal.com, which is well known; differs in “1” for “l” · ⚠ and 2 more",
		hidden: " · ⚠ " + strings.Repeat(`\u{200B}`, 12) + `\u{2… has invisible characters: ` + strings.Repeat(`\u{200B}`, 12) + `\u{2…`,
	} {
		if got := lookalike.Warning(json.RawMessage(args), 1); got != want {
			t.Errorf("Warning(%.60s) = %q, want %q", args, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add(`{"to":"Ana <ana@example.org>, https://a.b@c.d:1/x"}`)
	f.Add("{\"a@b.c\":[\"\\u0000@\\u200b.x\",\"xn--.com\",\"%ff@x.y\"]}")
	f.Fuzz(func(t *testing.T, args string) {
		for _, n := range lookalike.Names(json.RawMessage(args)) {
			lookalike.Check(n, []lookalike.Known{{Name: "example.org"}, {Name: "ana@example.org"}})
			email, domain := n.Plain()
			for _, key := range append(n.Keys(), email, domain) {
				if strings.ContainsRune(key, 0) || strings.ToValidUTF8(key, "") != key {
					t.Errorf("key %q of %q cannot be stored in PostgreSQL", key, args)
				}
			}
		}
	})
}
