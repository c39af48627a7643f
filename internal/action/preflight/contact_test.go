package preflight_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestParseContact(t *testing.T) {
	t.Parallel()

	german := preflight.ContactOptions{Region: "DE"}
	plus := preflight.ContactOptions{PlusAddressing: true}
	for _, test := range []struct {
		text    string
		options preflight.ContactOptions
		kind    preflight.ContactKind
		value   string
	}{
		{"ana@example.org", preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{"  Ana Silva <ANA@Example.ORG.> ", preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{`"Silva, Ana" <ana@example.org>`, preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{"mailto:ana%40example.org?cc=bob@example.org", preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{"an\u200ba@exam\u00adple.org", preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{"\uff41na\uff20example\uff0eorg", preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{"ana@b\u00fccher.example", preflight.ContactOptions{}, preflight.ContactEmail, "ana@xn--bcher-kva.example"},
		{"ana@BU\u0308CHER\u3002example", preflight.ContactOptions{}, preflight.ContactEmail, "ana@xn--bcher-kva.example"},
		{"ana@XN--BCHER-KVA.example", preflight.ContactOptions{}, preflight.ContactEmail, "ana@xn--bcher-kva.example"},
		{`"ana"@example.org`, preflight.ContactOptions{}, preflight.ContactEmail, "ana@example.org"},
		{`"a b"@example.org`, preflight.ContactOptions{}, preflight.ContactEmail, `"a b"@example.org`},
		{"a..na.@example.org", preflight.ContactOptions{}, preflight.ContactEmail, "a..na.@example.org"},
		{"a.na+shop@example.org", preflight.ContactOptions{}, preflight.ContactEmail, "a.na+shop@example.org"},
		{"a.na+shop+x@example.org", plus, preflight.ContactEmail, "a.na@example.org"},
		{"+shop@example.org", plus, preflight.ContactEmail, "+shop@example.org"},
		{"root@localhost", preflight.ContactOptions{}, preflight.ContactEmail, "root@localhost"},
		{"Example.ORG.", preflight.ContactOptions{}, preflight.ContactDomain, "example.org"},
		{"*.example.org", preflight.ContactOptions{}, preflight.ContactDomain, "example.org"},
		{"b\u00fccher.example", preflight.ContactOptions{}, preflight.ContactDomain, "xn--bcher-kva.example"},
		{"r3---sn_1.example.org", preflight.ContactOptions{}, preflight.ContactDomain, "r3---sn_1.example.org"},
		{"+49 (0)30 / 901820", preflight.ContactOptions{}, preflight.ContactPhone, "+4930901820"},
		{"0049 30 901820", preflight.ContactOptions{}, preflight.ContactPhone, "+4930901820"},
		{"tel:+49-30-901820", preflight.ContactOptions{}, preflight.ContactPhone, "+4930901820"},
		{"030 901820", german, preflight.ContactPhone, "+4930901820"},
		{"\uff0b49\u201130\u2013901820", preflight.ContactOptions{}, preflight.ContactPhone, "+4930901820"},
		{"+\u0664\u0669\u0663\u0660\u0669\u0660\u0661\u0668\u0662\u0660", preflight.ContactOptions{}, preflight.ContactPhone, "+4930901820"},
		{"@Ana_Silva", preflight.ContactOptions{}, preflight.ContactHandle, "ana_silva"},
		{"#General", preflight.ContactOptions{}, preflight.ContactHandle, "general"},
		{"@ana@social.example", preflight.ContactOptions{}, preflight.ContactHandle, "ana@social.example"},
		{"U012ABCDEF", preflight.ContactOptions{}, preflight.ContactHandle, "u012abcdef"},
		{" Ana  Stra\u00dfe ", preflight.ContactOptions{}, preflight.ContactHandle, "ana strasse"},
	} {
		got, err := preflight.ParseContact(test.text, test.options)

		if want := (preflight.Contact{Kind: test.kind, Value: test.value}); err != nil || got != want {
			t.Errorf("ParseContact(%q) = %+v, %v, want %+v", test.text, got, err, want)
		}
	}
}

func TestParseContactRefuses(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		kind preflight.ContactKind
		text string
		says string
	}{
		{"", "", "must be a name"},
		{"", "@", "must be a name"},
		{"", "@example.org", "kind"},
		{"", "ana@example.org, bob@example.org", "an entry for each"},
		{"", "ana silva@example.org", "mail address"},
		{"", "joana@", "mail address"},
		{"", "ana@[127.0.0.1]", "mail address"},
		{"", "ana@exa mple.org", "mail address"},
		{"", "mailto:", "mail address"},
		{"", "030 901820", "country's code"},
		{"", "+999 12345678", "can exist"},
		{preflight.ContactPhone, "ana", "in digits"},
		{preflight.ContactPhone, "+49 3", "in digits"},
		{preflight.ContactPhone, "+1 800 FLOWERS", "in digits"},
		{preflight.ContactPhone, "+4930901820 +4930901821", "in digits"},
		{preflight.ContactDomain, "org", "two labels"},
		{preflight.ContactDomain, "", "two labels"},
		{preflight.ContactDomain, "10.0.0.1", "two labels"},
		{preflight.ContactDomain, "exa mple.org", "two labels"},
		{preflight.ContactDomain, strings.Repeat("a", 64) + ".org", "two labels"},
		{preflight.ContactHandle, strings.Repeat("a", 321), "320"},
		{preflight.ContactEmail, strings.Repeat("a", 320) + "@example.org", "320"},
		{"fax", "ana", "one of email"},
	} {
		var err error
		if test.kind == "" {
			_, err = preflight.ParseContact(test.text, preflight.ContactOptions{})
		} else {
			_, err = preflight.ParseContactAs(test.kind, test.text, preflight.ContactOptions{})
		}

		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("ParseContact(%q, %q) = %v, want an invalid one that says %q", test.kind, test.text, err, test.says)
		}
		if len(test.text) > 3 && err != nil && strings.Contains(err.Error(), test.text) {
			t.Errorf("ParseContact(%q) repeats the value: %v", test.text, err)
		}
	}
}

func TestContactOptionsCheck(t *testing.T) {
	t.Parallel()

	for _, region := range []string{"", "DE", "US"} {
		if err := (preflight.ContactOptions{Region: region}).Check(); err != nil {
			t.Errorf("Check(%q) = %v", region, err)
		}
	}
	for _, region := range []string{"de", "XX", "49"} {
		err := preflight.ContactOptions{Region: region}.Check()
		if e, ok := errors.AsType[*envelope.InvalidError](err); !ok || e.Fields[0].Pointer != "/region" {
			t.Errorf("Check(%q) = %v, want an InvalidError at /region", region, err)
		}
	}
}

func contacts(list ...string) []preflight.Contact {
	var all []preflight.Contact
	for _, text := range list {
		kind, value, _ := strings.Cut(text, ":")
		all = append(all, preflight.Contact{Kind: preflight.ContactKind(kind), Value: value})
	}
	return all
}

func TestRecipients(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]preflight.Contact{
		"":                nil,
		"@ana":            contacts("handle:ana"),
		"#general":        contacts("handle:general"),
		"ana@example.org": contacts("email:ana@example.org", "domain:example.org", "handle:ana@example.org"),
		"Ana <ana@mail.example.org>": contacts("email:ana@mail.example.org", "domain:mail.example.org",
			"domain:example.org", "handle:ana@mail.example.org", "handle:ana <ana@mail.example.org>"),
		"+49 30 901820": contacts("handle:+49 30 901820", "phone:+4930901820"),
	} {
		if diff := cmp.Diff(want, preflight.Recipients(text, preflight.ContactOptions{})); diff != "" {
			t.Errorf("Recipients(%q) (-want +got):\n%s", text, diff)
		}
	}
}

// TestRecipientsCannotHide writes one recipient in all the ways that may slip
// past a list.
func TestRecipientsCannotHide(t *testing.T) {
	t.Parallel()

	german := preflight.ContactOptions{Region: "DE"}
	plus := preflight.ContactOptions{PlusAddressing: true}
	for _, test := range []struct {
		entry   string
		options preflight.ContactOptions
		texts   []string
	}{
		{"ana@example.org", preflight.ContactOptions{}, []string{
			"ANA@EXAMPLE.ORG", " ana@example.org\n", "ana@example.org.", "ana@example.org;", "ana@example.org,",
			"<ana@example.org>", "Ana <ana@example.org>", `"Silva, Ana" <ana@example.org>`, "Silva, Ana <ana@example.org>",
			"bob@example.net, ana@example.org", "bob@example.net; ana@example.org", "bob@example.net ana@example.org",
			"bob@example.net\r\nana@example.org", "team: bob@example.net, ana@example.org;", `["bob@example.net","ana@example.org"]`,
			`"ana"@example.org`, `"an\a"@example.org`, `x "ana"@example.org`, "ana(hi)@example.org", "ana@(hi)example.org", "ana @ example.org",
			"an\u200ba@example.org", "ana@exam\u200bple.org", "\u202eana@example.org", "\ufeffana@example.org", "ana@example.org\u2060",
			"ana\x00@example.org", "\uff41\uff4e\uff41\uff20\uff45xample\uff0eorg", "ana@example\u3002org", "ana\ufe6bexample.org",
			"mailto:ana@example.org", "MAILTO:ana%40example.org", "mailto:bob@example.net?cc=ana%40example.org&subject=x",
			"mailto:%61na@example.org", "%2561na@example.org", "=?utf-8?q?ana=40example.org?=", "ana&#64;example.org", "ana&commat;example.org",
			"ana@example.org <bob@example.net>", `"ana@example.org" <bob@example.net>`, "write to 'ana@example.org' please", "to=ana@example.org",
			"(ana@example.org)", "[ana@example.org](mailto:ana@example.org)", "https://ana@example.org/", "ana@example.org-", "ana@example.org\xff",
			"<mailto:ana@example.org|ana>", "sip:ana@example.org;transport=tcp", "smtp://example.net/?to=ana@example.org",
		}},
		{"example.org", preflight.ContactOptions{}, []string{
			"ana@example.org", "ana@a.b.example.org", "ana@EXAMPLE.org.", "https://hooks.example.org/in?x=1", "example.org", "www.example.org.", "@example.org",
		}},
		{"b\u00fccher.example", preflight.ContactOptions{}, []string{
			"ana@b\u00fccher.example", "ana@bu\u0308cher.example", "ana@xn--bcher-kva.example", "ana@XN--BCHER-KVA.EXAMPLE", "ana@B\u00dcCHER.example", "ana@shop.b\u00fccher.example",
		}},
		{"ana@example.org", plus, []string{"ana+x@example.org", "Ana+a+b <ana+%41@example.org>", `"ana+x y"@example.org`}},
		{"ana+x@example.org", plus, []string{"ana@example.org", "ana+y@example.org"}},
		{"+4930901820", preflight.ContactOptions{}, []string{
			"+49 30 901820", "+49 (0)30 901820", "+49-30-90.18.20", "(+49) 30 901820", "0049 30 901820", "011 49 30 901820", "4930901820", "tel:+49-30-901820",
			"TEL:+4930901820;ext=5", "sms:+4930901820", "whatsapp:+4930901820", "whatsapp://send?phone=4930901820", "https://wa.me/4930901820",
			"Ana: +49 30 901820", "+12125550123, +4930901820", "+12125550123 +4930901820", "12125550123 4930901820", "+49\u00a030\u2011901820", "\uff0b\uff14\uff1930901820",
			"+\u0664\u0669\u0663\u0660\u0669\u0660\u0661\u0668\u0662\u0660", "+49\u200b30901820", "%2B4930901820", "+4930901820 ext. 7", "+49 30 901820@sms.example.net", "tel:901820;phone-context=+4930",
		}},
		{"+4930901820", german, []string{"030 901820", "(030) 90 18 20", "030/901820", "tel:030901820", "+49 30 901820", "4930901820", "0049 30 901820"}},
		{"@ana", preflight.ContactOptions{}, []string{
			"ana", "ANA", "@Ana", "#ana", " @ana ", "bob, @ana", "@bob @ana", "ana;bob", "bob\nana", "<@ANA>", "<@U1|ana>", "\uff20\uff41\uff4e\uff41", "a\u00adna",
			"https://t.me/ana", "tg://resolve?domain=ana", "slack:ana", "\u0430na, ana",
		}},
		{"@ana@social.example", preflight.ContactOptions{}, []string{"@ana@social.example", "ana@social.example", "@ANA@Social.Example"}},
		{"ana.silva", preflight.ContactOptions{}, []string{"ana.silva", "@Ana.Silva"}}, // read as a domain, and found all the same
	} {
		entry, err := preflight.ParseContact(test.entry, test.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range test.texts {
			if got := preflight.Recipients(text, test.options); !slices.Contains(got, entry) {
				t.Errorf("Recipients(%q) = %v, want %v among them", text, got, entry)
			}
		}
	}
}

// TestRecipientsAreNotOthers writes recipients that only resemble an entry.
func TestRecipientsAreNotOthers(t *testing.T) {
	t.Parallel()

	for entry, texts := range map[string][]string{
		"ana@example.org": {"ana@example.org.evil.example", "joana@example.org", "o'ana@example.org", "a.na@example.org", "ana+x@example.org", "ana@mail.example.org", "ana@example.orga", "ana@example", "@ana"},
		"example.org":     {"ana@example.org.evil.example", "ana@notexample.org", "ana@example.com", "org"},
		"+4930901820":     {"+49309018201", "+4830901820", "030 901820", "x4930901820"},
		"@ana":            {"Ana <ana@example.org>", `"ana" <bob@example.org>`, "anna", "ana bob", "\u0430na"},
	} {
		contact, err := preflight.ParseContact(entry, preflight.ContactOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got := preflight.Recipients(text, preflight.ContactOptions{}); slices.Contains(got, contact) {
				t.Errorf("Recipients(%q) = %v, want %v not among them", text, got, contact)
			}
		}
	}
}

func seeds(f *testing.F) {
	for _, text := range []string{
		"", "Ana <ana@example.org>", `"a b"@x.org`, `"\"x <y@z>"@d.org`, "mailto:a%40b.org", "+49 (0)30 901820", "0049", "@a@b", "#x", "*.x.org",
		"\u0345\u03b1@\u1e9e.org", "a@xn--a", "\ufdfa@x.org", "a@\u2100.org", "=?utf-8?q?=40?=", "\xff@\xfe.x", "@\u0301x", "+5491123456789", "+521 55 1234 5678", "\u01c5\u0130\u00df", "xn--\u1e9e.x",
	} {
		f.Add(text, "DE", true)
		f.Add(text, "", false)
	}
}

// FuzzParseContact holds that a normal form is its own.
func FuzzParseContact(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, region string, plus bool) {
		o := preflight.ContactOptions{Region: region, PlusAddressing: plus}
		if o.Check() != nil {
			o.Region = ""
		}
		_, _ = preflight.ParseContact(text, o)
		for _, kind := range []preflight.ContactKind{preflight.ContactEmail, preflight.ContactDomain, preflight.ContactPhone, preflight.ContactHandle} {
			c, err := preflight.ParseContactAs(kind, text, o)
			if err != nil {
				continue
			}
			if again, err := preflight.ParseContactAs(kind, c.Value, o); err != nil || again != c {
				t.Errorf("ParseContactAs(%q) = %+q, but its value gives %+q, %v", text, c, again, err)
			}
			if got := preflight.Recipients(c.Value, o); !slices.Contains(got, c) {
				t.Errorf("Recipients(%+q) = %+q, want %+q among them", c.Value, got, c)
			}
			if got := preflight.Recipients(text, o); !slices.Contains(got, c) && len(text) <= preflight.MaxContactLength && !strings.Contains(text, "%") {
				t.Errorf("Recipients(%+q) = %+q, want %+q among them", text, got, c)
			}
		}
	})
}

// FuzzRecipients holds that whom it finds could be on the list.
func FuzzRecipients(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, region string, plus bool) {
		o := preflight.ContactOptions{Region: region, PlusAddressing: plus}
		if o.Check() != nil {
			o.Region = ""
		}
		for _, c := range preflight.Recipients(text, o) {
			if again, err := preflight.ParseContactAs(c.Kind, c.Value, o); err != nil || again != c {
				t.Errorf("Recipients(%q) has %+q, but an entry of it is %+q, %v", text, c, again, err)
			}
		}
	})
}
