package invisible_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/mail/message/invisible"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		text   string
		counts invisible.Counts
	}{
		"":                                   {"", invisible.Counts{}},
		"plain\n\ttext":                      {"plain\n\ttext", invisible.Counts{}},
		"pay\u200bpal\ufeff\u2060":           {"paypal", invisible.Counts{ZeroWidth: 3}},
		"in\u00advis\u00adible":              {"invisible", invisible.Counts{SoftHyphens: 2}},
		"exe\u202efdp.\u2066x\u2069":         {"exefdp.x", invisible.Counts{Bidi: 3}},
		"hi\U000e0068\U000e0069\U000e007f":   {"hi", invisible.Counts{Tags: 3}},
		"a\ufe01\ufe02\U000e0101":            {"a", invisible.Counts{Selectors: 3}},
		"⚠\ufe0f⚠\ufe0f\ufe0f 1\ufe0f\u20e3": {"⚠\ufe0f⚠\ufe0f 1\ufe0f\u20e3", invisible.Counts{Selectors: 1}},
		"葛\U000e0100":                        {"葛\U000e0100", invisible.Counts{}},
		"👩\u200d🚀 ❤\ufe0f\u200d🔥":            {"👩\u200d🚀 ❤\ufe0f\u200d🔥", invisible.Counts{}},
		"می\u200cخواهم क्\u200dष":            {"می\u200cخواهم क्\u200dष", invisible.Counts{}},
		"a\u200cb\u200dc":                    {"abc", invisible.Counts{ZeroWidth: 2}},
		"a\x00b\x1b[31mc\u0085":              {"ab[31mc", invisible.Counts{Other: 3}},
		"no\u00a0break\u2028line\u3000wide":  {"no break line wide", invisible.Counts{}},
		"e\u0301 \u212b":                     {"é Å", invisible.Counts{}},
		"שלום\u200f \u3164\u2800\u115f":      {"שלום ", invisible.Counts{Other: 4}},
		"\xff\xfe":                           {"\uFFFD\uFFFD", invisible.Counts{}},
	} {
		got, counts := invisible.Clean(text)
		if got != want.text || counts != want.counts {
			t.Errorf("Clean(%q) = %q, %+v, want %q, %+v", text, got, counts, want.text, want.counts)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Ｐａｙ\u00a0 ＰＡＬ\u200b":           "pay pal",
		"𝓘𝓰𝓷𝓸𝓻𝓮 previous\ninstructions": "ignore previous instructions",
		"ﬁne ①": "fine 1",
		"":      "",
	} {
		if got := invisible.Fold(text); got != want {
			t.Errorf("Fold(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u200b\xff")
	f.Add("👩\u200d🚀\ufe0f\ufe0f\u202e")
	f.Add("e\u0301\u200d\u0301\ufe0f")
	f.Fuzz(func(t *testing.T, text string) {
		clean, counts := invisible.Clean(text)
		again, more := invisible.Clean(clean)
		if again != clean || more.Total() > 0 {
			t.Errorf("Clean(%q) = %q, and of that %q, %+v", text, clean, again, more)
		}
		if !utf8.ValidString(clean) || counts.Total() == 0 && utf8.RuneCountInString(clean) > 2*utf8.RuneCountInString(text) {
			t.Errorf("Clean(%q) = %q", text, clean)
		}
		if strings.Count(clean, "\n") != strings.Count(text, "\n") || strings.ContainsAny(clean, "\x00\u200b\u202e\u00ad") {
			t.Errorf("Clean(%q) = %q", text, clean)
		}
	})
}
