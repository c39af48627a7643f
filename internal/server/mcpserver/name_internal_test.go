package mcpserver

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestNamesAreReadable(t *testing.T) {
	t.Parallel()
	for key, want := range map[policy.Key]string{
		{Source: "notes", Action: "notes.create"}:     "notes__notes.create",
		{Source: "files", Action: "write_file"}:       "files__write_file",
		{Source: "everything", Action: "get-env"}:     "everything__get-env",
		{Source: "a_b.c-d", Action: "_x__y_"}:         "a_b.c-d___x__y_",
		{Source: "a_", Action: "b"}:                   "a..5F.__b",
		{Source: "a__b", Action: "c"}:                 "a..5F._b__c",
		{Source: "a", Action: "b c"}:                  "a__b..20.c",
		{Source: "a", Action: "é"}:                    "a__..C3...A9.",
		{Source: "a", Action: "b..c"}:                 "a__b..2E...2E.c",
		{Source: "countersign", Action: "wait"}:       "countersign__wait",
		{Source: "countersign", Action: "note.write"}: "countersign__note.write",
	} {
		if got := nameOf(key); got != want {
			t.Errorf("nameOf(%s) = %q, want %q", key, got, want)
		}
	}
}

// keys are keys that have much of what makes names ambiguous.
func keys() *rapid.Generator[policy.Key] {
	awkward := rapid.SampledFrom([]string{"_", "__", ".", "..", "..5F.", "..h", "a", "h", "F", "20.", "-", " ", "é", "\x00", strings.Repeat("x", 60)})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(awkward, 1, 6).Draw(t, "parts"), "") })
	return rapid.Custom(func(t *rapid.T) policy.Key {
		return policy.Key{Source: text.Draw(t, "source"), Action: text.Draw(t, "action")}
	})
}

func TestNamesAreValid(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	rapid.Check(t, func(t *rapid.T) {
		key := keys().Draw(t, "key")

		name := nameOf(key)

		if !allowed.MatchString(name) {
			t.Fatalf("nameOf(%q) = %q, which is no name", key, name)
		}
		if isBuiltin(name) || name == catalogTool {
			t.Fatalf("nameOf(%q) = %q, which is one of our own", key, name)
		}
	})
}

func TestNamesDoNotCollide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, two := keys().Draw(t, "one"), keys().Draw(t, "two")
		if one != two && nameOf(one) == nameOf(two) {
			t.Fatalf("%q and %q are both %q", one, two, nameOf(one))
		}
	})
}
