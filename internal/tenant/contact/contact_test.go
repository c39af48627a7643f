package contact_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

func TestParseContact(t *testing.T) {
	t.Parallel()

	german := contact.Options{Region: "DE"}
	plus := contact.Options{PlusAddressing: true}
	for _, test := range []struct {
		text    string
		options contact.Options
		kind    contact.Kind
		value   string
	}{
		{"ana@example.org", contact.Options{}, contact.Email, "ana@example.org"},
		{"  Ana Silva <ANA@Example.ORG.> ", contact.Options{}, contact.Email, "ana@example.org"},
		{`"Silva, Ana" <ana@example.org>`, contact.Options{}, contact.Email, "ana@example.org"},
		{"mailto:ana%40example.org?cc=bob@example.org", contact.Options{}, contact.Email, "ana@example.org"},
		{"an\u200ba@exam\u00adple.org", contact.Options{}, contact.Email, "ana@example.org"},
		{"\uff41na\uff20example\uff0eorg", contact.Options{}, contact.Email, "ana@example.org"},
		{"ana@b\u00fccher.example", contact.Options{}, contact.Email, "ana@xn--bcher-kva.example"},
		{"ana@BU\u0308CHER\u3002example", contact.Options{}, contact.Email, "ana@xn--bcher-kva.example"},
		{"ana@XN--BCHER-KVA.example", contact.Options{}, contact.Email, "ana@xn--bcher-kva.example"},
		{`"ana"@example.org`, contact.Options{}, contact.Email, "ana@example.org"},
		{`"a b"@example.org`, contact.Options{}, contact.Email, `"a b"@example.org`},
		{"a..na.@example.org", contact.Options{}, contact.Email, "a..na.@example.org"},
		{"a.na+shop@example.org", contact.Options{}, contact.Email, "a.na+shop@example.org"},
		{"a.na+shop+x@example.org", plus, contact.Email, "a.na@example.org"},
		{"+shop@example.org", plus, contact.Email, "+shop@example.org"},
		{"root@localhost", contact.Options{}, contact.Email, "root@localhost"},
		{"Example.ORG.", contact.Options{}, contact.Domain, "example.org"},
		{"*.example.org", contact.Options{}, contact.Domain, "example.org"},
		{"b\u00fccher.example", contact.Options{}, contact.Domain, "xn--bcher-kva.example"},
		{"r3---sn_1.example.org", contact.Options{}, contact.Domain, "r3---sn_1.example.org"},
		{"+49 (0)30 / 901820", contact.Options{}, contact.Phone, "+4930901820"},
		{"0049 30 901820", contact.Options{}, contact.Phone, "+4930901820"},
		{"tel:+49-30-901820", contact.Options{}, contact.Phone, "+4930901820"},
		{"030 901820", german, contact.Phone, "+4930901820"},
		{"\uff0b49\u201130\u2013901820", contact.Options{}, contact.Phone, "+4930901820"},
		{"+\u0664\u0669\u0663\u0660\u0669\u0660\u0661\u0668\u0662\u0660", contact.Options{}, contact.Phone, "+4930901820"},
		{"@Ana_Silva", contact.Options{}, contact.Handle, "ana_silva"},
		{"#General", contact.Options{}, contact.Handle, "general"},
		{"@ana@social.example", contact.Options{}, contact.Handle, "ana@social.example"},
		{"U012ABCDEF", contact.Options{}, contact.Handle, "u012abcdef"},
		{" Stra\u00dfe ", contact.Options{}, contact.Handle, "strasse"},
	} {
		got, err := contact.Parse(test.text, test.options)

		if want := (contact.Contact{Kind: test.kind, Value: test.value}); err != nil || got != want {
			t.Errorf("ParseContact(%q) = %+v, %v, want %+v", test.text, got, err, want)
		}
	}
}

func TestParseContactRefuses(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		kind contact.Kind
		text string
		says string
	}{
		{"", "", "must be a name"},
		{"", "@", "must be a name"},
		{"", "not an address at all", "contact must be a mail address, a domain"},
		{"", "@example.org", "kind"},
		{"", "ana@example.org, bob@example.org", "an entry for each"},
		{"", "ana silva@example.org", "mail address"},
		{"", "joana@", "mail address"},
		{"", "ana@[127.0.0.1]", "mail address"},
		{"", "ana@exa mple.org", "mail address"},
		{"", "mailto:", "mail address"},
		{"", "030 901820", "country's code"},
		{"", "+999 12345678", "a valid telephone number"},
		{contact.Phone, "ana", "in digits"},
		{contact.Phone, "+49 3", "in digits"},
		{contact.Phone, "+1 800 FLOWERS", "in digits"},
		{contact.Phone, "+4930901820 +4930901821", "in digits"},
		{contact.Domain, "org", "two labels"},
		{contact.Domain, "", "two labels"},
		{contact.Domain, "10.0.0.1", "two labels"},
		{contact.Domain, "exa mple.org", "two labels"},
		{contact.Domain, strings.Repeat("a", 64) + ".org", "two labels"},
		{contact.Handle, strings.Repeat("a", 321), "320"},
		{contact.Email, strings.Repeat("a", 320) + "@example.org", "320"},
		{"fax", "ana", "one of email"},
	} {
		var err error
		if test.kind == "" {
			_, err = contact.Parse(test.text, contact.Options{})
		} else {
			_, err = contact.ParseAs(test.kind, test.text, contact.Options{})
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
		if err := (contact.Options{Region: region}).Check(); err != nil {
			t.Errorf("Check(%q) = %v", region, err)
		}
	}
	for _, region := range []string{"de", "XX", "49"} {
		err := contact.Options{Region: region}.Check()
		if e, ok := errors.AsType[*envelope.InvalidError](err); !ok || e.Fields[0].Pointer != "/region" {
			t.Errorf("Check(%q) = %v, want an InvalidError at /region", region, err)
		}
	}
}

func contacts(list ...string) []contact.Contact {
	var all []contact.Contact
	for _, text := range list {
		kind, value, _ := strings.Cut(text, ":")
		all = append(all, contact.Contact{Kind: contact.Kind(kind), Value: value})
	}
	return all
}

func TestRecipients(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]contact.Contact{
		"":                nil,
		"@ana":            contacts("handle:ana"),
		"#general":        contacts("handle:general"),
		"ana@example.org": contacts("email:ana@example.org", "domain:example.org", "handle:ana@example.org"),
		"Ana <ana@mail.example.org>": contacts("email:ana@mail.example.org", "domain:mail.example.org",
			"domain:example.org", "handle:ana@mail.example.org", "handle:ana <ana@mail.example.org>"),
		"+49 30 901820": contacts("handle:+49 30 901820", "phone:+4930901820"),
	} {
		if diff := cmp.Diff(want, contact.Recipients(text, contact.Options{})); diff != "" {
			t.Errorf("Recipients(%q) (-want +got):\n%s", text, diff)
		}
	}
}

// TestRecipientsCannotHide writes one recipient in many ways that might evade a
// list.
func TestRecipientsCannotHide(t *testing.T) {
	t.Parallel()

	german := contact.Options{Region: "DE"}
	plus := contact.Options{PlusAddressing: true}
	for _, test := range []struct {
		entry   string
		options contact.Options
		texts   []string
	}{
		{"ana@example.org", contact.Options{}, []string{
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
		{"example.org", contact.Options{}, []string{
			"ana@example.org", "ana@a.b.example.org", "ana@EXAMPLE.org.", "https://hooks.example.org/in?x=1", "example.org", "www.example.org.", "@example.org",
		}},
		{"b\u00fccher.example", contact.Options{}, []string{
			"ana@b\u00fccher.example", "ana@bu\u0308cher.example", "ana@xn--bcher-kva.example", "ana@XN--BCHER-KVA.EXAMPLE", "ana@B\u00dcCHER.example", "ana@shop.b\u00fccher.example",
		}},
		{"ana@example.org", plus, []string{"ana+x@example.org", "Ana+a+b <ana+%41@example.org>", `"ana+x y"@example.org`}},
		{"ana+x@example.org", plus, []string{"ana@example.org", "ana+y@example.org"}},
		{"+4930901820", contact.Options{}, []string{
			"+49 30 901820", "+49 (0)30 901820", "+49-30-90.18.20", "(+49) 30 901820", "0049 30 901820", "011 49 30 901820", "4930901820", "tel:+49-30-901820",
			"TEL:+4930901820;ext=5", "sms:+4930901820", "whatsapp:+4930901820", "whatsapp://send?phone=4930901820", "https://wa.me/4930901820",
			"Ana: +49 30 901820", "+12125550123, +4930901820", "+12125550123 +4930901820", "12125550123 4930901820", "+49\u00a030\u2011901820", "\uff0b\uff14\uff1930901820",
			"+\u0664\u0669\u0663\u0660\u0669\u0660\u0661\u0668\u0662\u0660", "+49\u200b30901820", "%2B4930901820", "+4930901820 ext. 7", "+49 30 901820@sms.example.net", "tel:901820;phone-context=+4930",
		}},
		{"+4930901820", german, []string{"030 901820", "(030) 90 18 20", "030/901820", "tel:030901820", "+49 30 901820", "4930901820", "0049 30 901820"}},
		{"@ana", contact.Options{}, []string{
			"ana", "ANA", "@Ana", "#ana", " @ana ", "bob, @ana", "@bob @ana", "ana;bob", "bob\nana", "<@ANA>", "<@U1|ana>", "\uff20\uff41\uff4e\uff41", "a\u00adna",
			"https://t.me/ana", "tg://resolve?domain=ana", "slack:ana", "\u0430na, ana",
		}},
		{"@ana@social.example", contact.Options{}, []string{"@ana@social.example", "ana@social.example", "@ANA@Social.Example"}},
		{"ana.silva", contact.Options{}, []string{"ana.silva", "@Ana.Silva"}}, // read as a domain, and found all the same
	} {
		entry, err := contact.Parse(test.entry, test.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range test.texts {
			if got := contact.Recipients(text, test.options); !slices.Contains(got, entry) {
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
		entryContact, err := contact.Parse(entry, contact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got := contact.Recipients(text, contact.Options{}); slices.Contains(got, entryContact) {
				t.Errorf("Recipients(%q) = %v, want %v not among them", text, got, entryContact)
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

// FuzzParseContact checks that the normal form of a normal form is itself.
func FuzzParseContact(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, region string, plus bool) {
		o := contact.Options{Region: region, PlusAddressing: plus}
		if o.Check() != nil {
			o.Region = ""
		}
		_, _ = contact.Parse(text, o)
		for _, kind := range []contact.Kind{contact.Email, contact.Domain, contact.Phone, contact.Handle} {
			c, err := contact.ParseAs(kind, text, o)
			if err != nil {
				continue
			}
			if again, err := contact.ParseAs(kind, c.Value, o); err != nil || again != c {
				t.Errorf("ParseContactAs(%q) = %+q, but its value gives %+q, %v", text, c, again, err)
			}
			if got := contact.Recipients(c.Value, o); !slices.Contains(got, c) {
				t.Errorf("Recipients(%+q) = %+q, want %+q among them", c.Value, got, c)
			}
			if got := contact.Recipients(text, o); !slices.Contains(got, c) && len(text) <= contact.MaxLength && !strings.Contains(text, "%") {
				t.Errorf("Recipients(%+q) = %+q, want %+q among them", text, got, c)
			}
		}
	})
}

// FuzzRecipients checks that every recipient found could be an entry.
func FuzzRecipients(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, region string, plus bool) {
		o := contact.Options{Region: region, PlusAddressing: plus}
		if o.Check() != nil {
			o.Region = ""
		}
		for _, c := range contact.Recipients(text, o) {
			if again, err := contact.ParseAs(c.Kind, c.Value, o); err != nil || again != c {
				t.Errorf("Recipients(%q) has %+q, but an entry of it is %+q, %v", text, c, again, err)
			}
		}
	})
}
