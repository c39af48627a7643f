package quote

import (
	"slices"
	"strings"
	"testing"
)

// TestWordsOfPhrases checks the words and letters that are looked for before
// phrases: a phrase without one would never match.
func TestWordsOfPhrases(t *testing.T) {
	t.Parallel()
	for _, list := range []struct{ words, phrases []string }{{bannerWords, banners}, {legalWords, legal}} {
		for _, phrase := range list.phrases {
			if !slices.ContainsFunc(list.words, func(word string) bool { return strings.Contains(phrase, word) }) {
				t.Errorf("%q has none of the words %q", phrase, list.words)
			}
		}
	}
	for _, device := range devices {
		if device[0] < 0x80 && !strings.Contains(deviceLetters, device[:1]) {
			t.Errorf("%q begins with none of %q", device, deviceLetters)
		}
	}
}
