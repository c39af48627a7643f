package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestQueryTerms(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"Send the e-mails to them":                   {"send", "e", "mail"},
		"who wrote it, and what was bought":          {"who", "write", "buy"},
		"how many rows are there":                    {"how_mani", "row"},
		"how are many rows":                          {"mani", "row"},
		"take the song off":                          {"take_off", "song"},
		"take off the song":                          {"take_off", "song"},
		"took my old songs off":                      {"take_off", "old", "song"},
		"take it and then much later and switch off": {"switch_off", "take", "later"},
		"is the garage door open":                    {"door", "garag", "open", "state"},
		"what is open":                               {"open"},
		"log in":                                     {"log_in"},
		"log it in":                                  {"log"},
		"the of and":                                 nil,
		"":                                           nil,
	} {
		got := queryTerms(query)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("queryTerms(%q) (-want +got):\n%s", query, diff)
		}
	}
	if got := queryTerms(strings.Repeat("take the song off ", 100_000)); len(got) > maxQueryTerms {
		t.Errorf("a long text has %d terms", len(got))
	}
}

func TestSynonyms(t *testing.T) {
	t.Parallel()
	table := newSynonyms("create make\nset_up > make start\nput+away > archive\n", "make build make\n")

	want := map[string][]string{"creat": {"make"}, "make": {"creat"}, "set_up": {"make", "start"}, "put_away": {"archiv"}}
	if diff := cmp.Diff(want, table.of); diff != "" {
		t.Errorf("synonyms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"make": {"build"}}, table.associated); diff != "" {
		t.Errorf("associations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"archiv", "build", "creat", "make", "start"}, table.words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if apart := table.phrases["put"]; len(apart) != 1 || !apart[0].apart || table.phrases["set"][0].apart {
		t.Errorf("phrases are %+v", table.phrases)
	}
}

// TestPhrasesMatchTheirWords finds a tool by a phrase whose words are in its
// name.
func TestPhrasesMatchTheirWords(t *testing.T) {
	t.Parallel()
	ix := newIndex(map[policy.Key]*Tool{
		{Source: "a", Action: "turn_light_off"}: {Key: policy.Key{Source: "a", Action: "turn_light_off"}},
	})
	if found := ix.candidates("turn_off"); found["turn"] != matchPart {
		t.Errorf("turn_off matches %v", found)
	}
}

// TestVocabulary checks the format of the vocabulary files.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(synonymGroups) {
		from, to, directed := strings.Cut(strings.TrimSpace(line), ">")
		if directed && (len(strings.Fields(from)) != 1 || len(strings.Fields(to)) == 0) || !directed && len(strings.Fields(from)) < 2 {
			t.Errorf("the group %q has no synonyms", line)
		}
	}
	for line := range strings.Lines(associations) {
		if len(strings.Fields(line)) < 2 || strings.ContainsAny(line, "_+>") {
			t.Errorf("the line %q has no associations", line)
		}
	}
	for form, base := range baseForm {
		if stemOf(form) != stemOf(base) || baseForm[base] != "" {
			t.Errorf("%q and %q have the stems %q and %q", form, base, stemOf(form), stemOf(base))
		}
	}
}
