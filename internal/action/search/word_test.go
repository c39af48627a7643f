package search_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/action/search"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                          nil,
		"% _ ' \\ :* & | !":         nil,
		"\u200b\u202e":              nil,
		"Invoice":                   {"invoice*"},
		"INVOICE  117":              {"invoice", "117*"},
		"Ana@Example.org":           {"ana", "example", "org*"},
		"mail:send_email":           {"mail", "send", "email*"},
		"Zoë Müller-Straße":         {"zoe", "muller", "strasse*"},
		"Zoe\u0308":                 {"zoe*"},
		"in\u200bvoice":             {"invoice*"},
		"ＡＢＣ":                       {"abc*"},
		"ΑΘΉΝΑΣ":                    {"αθηνασ*"},
		"請":                         {"請*"},
		"請求書":                       {"請求", "求書"},
		"請求書 117":                   {"請求", "求書", "117*"},
		"ﾃｽﾄ":                       {"テス", "スト"},
		"東京tower":                   {"東京", "tower*"},
		"서울시":                       {"서울시*"},
		strings.Repeat("x", 10_000): {strings.Repeat("x", 64) + "*"},
	} {
		if got := search.Parse(text); !slices.Equal(got, want) {
			t.Errorf("Parse(%q) = %q, want %q", text, got, want)
		}
	}
}
