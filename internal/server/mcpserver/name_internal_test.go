package mcpserver

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestNamesAreReadable(t *testing.T) {
	t.Parallel()
	for key, want := range map[policy.Key]string{
		{Source: "notes", Action: "notes.create"}:              "notes__notes--create",
		{Source: "files", Action: "write_file"}:                "files__write_file",
		{Source: "everything", Action: "get-env"}:              "everything__get-env",
		{Source: "crm", Action: "contacts/add_contact"}:        "crm__contacts---add_contact",
		{Source: "crm", Action: "GMAIL_SEND_EMAIL"}:            "crm__GMAIL_SEND_EMAIL",
		{Source: "a_b.c-d", Action: "_x__y_"}:                  "a_b--c-d___x__y_",
		{Source: "a_", Action: "b"}:                            "a-_5F__b",
		{Source: "a__b", Action: "c"}:                          "a-_5F_b__c",
		{Source: "a", Action: "b c"}:                           "a__b-_20c",
		{Source: "a", Action: "b--c"}:                          "a__b-_2D-_2Dc",
		{Source: "a", Action: "é"}:                             "a__-_C3-_A9",
		{Source: "a", Action: "b..c"}:                          "a__b-_2E-_2Ec",
		{Source: "a.", Action: ""}:                             "a-_2E__",
		{Source: "3d", Action: "1st"}:                          "3d__1st",
		{Source: "countersign", Action: "wait"}:                "countersign__wait",
		{Source: "countersign", Action: "note.write"}:          "countersign__note--write",
		{Source: "gateway", Action: strings.Repeat("abc", 99)}: "gateway__abcabcabcabcabcabcabcabcab-_h34472wh2prm445r45nmx44j52q",
	} {
		if got := nameOf(key); got != want {
			t.Errorf("nameOf(%s) = %q, want %q", key, got, want)
		}
	}
}

// keys generates keys with many of the characters that make names ambiguous.
func keys() *rapid.Generator[policy.Key] {
	awkward := rapid.SampledFrom([]string{
		"_", "__", "-", "--", "---", "-_", "-_5F", "-_h", ".", "..", "/", "a", "A", "h", "F", "20", "7", " ", "é", "\U000e0041", "\u202e",
		"\x00", "\xff", ":", strings.Repeat("x", 20), strings.Repeat("y", 300),
	})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(awkward, 0, 6).Draw(t, "parts"), "") })
	return rapid.Custom(func(t *rapid.T) policy.Key {
		return policy.Key{Source: text.Draw(t, "source"), Action: text.Draw(t, "action")}
	})
}

// Clients drop the whole list for one name that does not match.
var allowed = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Ten thousand unusual tools in one catalog: clients accept every name, no two
// are equal, and each maps back to its tool.
func TestNamesOfTenThousandOddTools(t *testing.T) {
	t.Parallel()
	var tools []*catalog.Tool
	known := make(map[policy.Key]bool)
	add := func(key policy.Key) {
		if !known[key] {
			known[key] = true
			tools = append(tools, &catalog.Tool{Key: key})
		}
	}
	// Keys chosen to collide: the escaped form of one is another.
	for _, key := range []policy.Key{
		{Source: "", Action: ""}, {Source: "a", Action: "b"}, {Source: "a", Action: "B"}, {Source: "A", Action: "b"},
		{Source: "a__b", Action: "c"}, {Source: "a", Action: "b__c"}, {Source: "a_", Action: "_b"}, {Source: "a", Action: "__b"},
		{Source: "a", Action: "b.c"}, {Source: "a", Action: "b--c"}, {Source: "a", Action: "b/c"}, {Source: "a", Action: "b---c"},
		{Source: "countersign", Action: "wait"}, {Source: "", Action: "countersign_wait"}, {Source: "countersign_wait", Action: ""},
	} {
		add(key)
		add(policy.Key{Source: key.Source, Action: nameOf(key)})
		add(policy.Key{Source: nameOf(key), Action: key.Action})
		for _, long := range []string{strings.Repeat("l", 300), strings.Repeat("é", 150)} {
			one := policy.Key{Source: key.Source, Action: key.Action + long}
			add(one)
			left, right, _ := strings.Cut(nameOf(one), separator)
			add(policy.Key{Source: left, Action: right})
		}
	}
	generated := keys()
	for seed := 0; len(tools) < 10_000; seed++ {
		add(generated.Example(seed))
	}

	names := make(map[string]policy.Key, len(tools))
	for _, tool := range tools {
		name := nameOf(tool.Key)
		if other, taken := names[name]; taken {
			t.Fatalf("%q and %q are both %q", other, tool.Key, name)
		}
		names[name] = tool.Key
		if !allowed.MatchString(name) || isBuiltin(name) || name == catalogTool {
			t.Fatalf("nameOf(%q) = %q, which clients refuse or which is one of our own", tool.Key, name)
		}
		asked := false
		key, ok := resolve(name, func() []*catalog.Tool { asked = true; return []*catalog.Tool{tool} })
		if !ok || key != tool.Key {
			t.Fatalf("resolve(%q) = %q, %v, want %q", name, key, ok, tool.Key)
		}
		if asked != strings.Contains(name, shortened) {
			t.Fatalf("resolve(%q) asks the catalog: %v", name, asked)
		}
	}
}

func TestNamesAreReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := keys().Draw(t, "key")
		name := nameOf(key)

		got, ok := resolve(name, func() []*catalog.Tool { return []*catalog.Tool{{Key: key}} })

		if !allowed.MatchString(name) || !ok || got != key {
			t.Fatalf("nameOf(%q) = %q, which is resolved as %q, %v", key, name, got, ok)
		}
	})
}

// Every text is the name of at most one tool.
func TestOtherTextsAreNoNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-F0-9_-]{0,70}`).Draw(t, "text")

		key, ok := resolve(text, func() []*catalog.Tool { return nil })

		if ok && nameOf(key) != text {
			t.Fatalf("%q is resolved as %q, whose name is %q", text, key, nameOf(key))
		}
	})
}
