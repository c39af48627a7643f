package evaluate_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// labelled is a line of the project's own sets.
type labelled struct {
	ID     string  `json:"id"`
	Raw    string  `json:"raw"`
	Owner  string  `json:"owner"`
	Labels labels  `json:"labels"`
	Second *labels `json:"second"`
	// Kind is the kind of a lure.
	Kind string `json:"kind"`
}

type labels struct {
	Act      string `json:"act"`
	Category string `json:"category"`
	Priority string `json:"priority"`
	Unwanted bool   `json:"unwanted"`
	Phishing bool   `json:"phishing"`
	Cohort   string `json:"cohort"`
	Bucket   string `json:"bucket"`
	Security bool   `json:"security"`
}

const (
	fixtureFolder  = "testdata/fixture"
	trainingFolder = "../classify/training"

	languagesFolder = "testdata/languages"
	luresFolder     = "testdata/lures"
)

func acts() []string {
	return []string{"request", "commit", "deliver", "propose", "meet", "amend", "fyi"}
}

func cohortNames() []string {
	return []string{"newsletters", "transactional", "social", "vip", "first_contact", "cross_org", "intra_org", "default"}
}

// readLabelled reads the files *.jsonl of a folder, and rejects unknown
// members.
func readLabelled(t *testing.T, folder string) []labelled {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob(%q) = %q, %v, want files", folder, names, err)
	}
	var all []labelled
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			decoder := json.NewDecoder(bytes.NewReader(line))
			decoder.DisallowUnknownFields()
			var l labelled
			if err := decoder.Decode(&l); err != nil {
				t.Fatalf("%s, line %d of the folder: %v", name, len(all)+1, err)
			}
			all = append(all, l)
		}
	}
	return all
}

// bucketOf implements the table in the fixture's README.
func bucketOf(l labels) string {
	low := slices.Contains([]string{"deliver", "fyi", "commit"}, l.Act)
	bulk := l.Cohort == "newsletters" || l.Cohort == "social"
	switch {
	case l.Phishing:
		return "informational"
	case l.Priority == "urgent":
		return "urgent"
	case l.Priority == "needs_response":
		return "actionable"
	case l.Priority == "promotional":
		return "archived"
	case l.Priority == "personal" && !low:
		return "actionable"
	case l.Priority == "personal", l.Security:
		return "informational"
	case bulk && (low || l.Act == "amend"), l.Cohort == "transactional" && low:
		return "archived"
	}
	return "informational"
}

func checkLabels(t *testing.T, id string, l labels) {
	t.Helper()
	for _, of := range []struct {
		value string
		of    []string
	}{
		{l.Act, acts()},
		{l.Category, []string{"primary", "newsletters", "notifications", "promotions", "receipts", "social"}},
		{l.Priority, []string{"urgent", "needs_response", "fyi", "promotional", "personal"}},
		{l.Cohort, cohortNames()},
	} {
		if !slices.Contains(of.of, of.value) {
			t.Errorf("%s is labelled %q, want one of %q", id, of.value, of.of)
		}
	}
	if got, want := l.Bucket, bucketOf(l); got != want {
		t.Errorf("%s has the bucket %q, want %q by its other labels", id, got, want)
	}
	if l.Phishing && !l.Unwanted {
		t.Errorf("%s is phishing and not unwanted", id)
	}
	if l.Unwanted && l.Priority != "promotional" {
		t.Errorf("%s is unwanted and has the priority %q, want promotional", id, l.Priority)
	}
}

// TestLabelledMailIsValid checks all sets: ids are unique, messages
// parse, labels are valid, and domains are reserved ones.
func TestLabelledMailIsValid(t *testing.T) {
	t.Parallel()
	reserved := regexp.MustCompile(`(?i)(^|\.)(example|test)$|(^|\.)example\.(com|net|org)$`)
	seen := map[string]bool{}

	whole := append(readLabelled(t, fixtureFolder), readLabelled(t, trainingFolder)...)
	for i, l := range slices.Concat(whole, readLabelled(t, languagesFolder), readLabelled(t, luresFolder)) {
		if l.ID == "" || seen[l.ID] {
			t.Errorf("id %q is empty or there twice", l.ID)
		}
		seen[l.ID] = true
		if i < len(whole) {
			checkLabels(t, l.ID, l.Labels)
		}
		m, err := mail.ReadMessage(strings.NewReader(l.Raw))
		if err != nil {
			t.Errorf("%s is not a message: %v", l.ID, err)
			continue
		}
		for _, name := range []string{"From", "To", "Cc", "Reply-To"} {
			if m.Header.Get(name) == "" && name != "From" {
				continue
			}
			list, err := m.Header.AddressList(name)
			if err != nil {
				t.Errorf("%s: %s: %v", l.ID, name, err)
			}
			for _, a := range list {
				if domain := a.Address[strings.LastIndexByte(a.Address, '@')+1:]; !reserved.MatchString(domain) {
					t.Errorf("%s: %s names the domain %q, want one that is reserved for examples", l.ID, name, domain)
				}
			}
		}
	}
}

// TestFixtureCoversEveryCell checks that the fixture has every cohort with
// every act, phishing and honest mail that resembles it, and a tenth that was
// labelled twice.
func TestFixtureCoversEveryCell(t *testing.T) {
	t.Parallel()
	all := readLabelled(t, fixtureFolder)
	cells := map[[2]string]int{}
	counts := map[string]int{}
	var sizes []int
	for _, l := range all {
		cells[[2]string{l.Labels.Cohort, l.Labels.Act}]++
		counts[l.Labels.Priority]++
		if l.Labels.Phishing {
			counts["phishing"]++
		}
		if l.Second != nil {
			counts["second"]++
			checkLabels(t, l.ID+" (second)", *l.Second)
		}
		sizes = append(sizes, len(l.Raw))
	}

	for _, cohort := range cohortNames() {
		for _, act := range acts() {
			if n := cells[[2]string{cohort, act}]; n < 3 {
				t.Errorf("%d messages are %s of %s, want 3 or more", n, act, cohort)
			}
		}
	}
	for what, least := range map[string]int{
		"urgent": 20, "needs_response": 40, "fyi": 60, "promotional": 30, "personal": 15, "phishing": 25, "second": (len(all) + 9) / 10,
	} {
		if counts[what] < least {
			t.Errorf("%d messages are %s, want %d or more", counts[what], what, least)
		}
	}
	slices.Sort(sizes)
	if median := sizes[len(sizes)/2]; len(all) < 240 || median > 1200 {
		t.Errorf("the fixture has %d messages with a median of %d bytes, want 240 or more and at most 1200", len(all), median)
	}
}

// TestLanguagesAreCovered checks the numbers of the README for each language.
func TestLanguagesAreCovered(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"de", "fr", "es", "it", "pl", "pt", "ja", "en"} {
		count, seen := map[string]int{}, map[string]bool{}
		for _, l := range readLabelled(t, languagesFolder) {
			if !strings.HasPrefix(l.ID, language) {
				continue
			}
			if !slices.Contains(acts(), l.Labels.Act) || l.Labels.Category == "" || l.Labels.Cohort != "" {
				t.Errorf("%s has the labels %+v", l.ID, l.Labels)
			}
			seen[l.Labels.Act] = true
			count["all"]++
			count[l.Labels.Priority]++
		}
		if need := count["urgent"] + count["needs_response"]; count["all"] != 40 || need < 20 || count["urgent"] < 5 || len(seen) != len(acts()) {
			t.Errorf("%s: %v, with the acts %v", language, count, seen)
		}
	}
}

// TestLuresAreCovered checks the numbers of the README.
func TestLuresAreCovered(t *testing.T) {
	t.Parallel()
	count, foreign := map[string]int{}, 0
	for _, l := range readLabelled(t, luresFolder) {
		count[l.Kind]++
		if (l.Kind == "honest") == l.Labels.Phishing {
			t.Errorf("%s of the kind %q is labelled phishing: %v", l.ID, l.Kind, l.Labels.Phishing)
		}
		if !strings.HasPrefix(l.ID, "lu-en-") {
			foreign++
		}
	}

	if foreign != 41 {
		t.Errorf("%d messages are not English, want 41", foreign)
	}
	want := map[string]int{"credentials": 10, "parcel": 10, "bank": 10, "boss": 10, "payment": 10, "device": 10, "honest": 60}
	if !maps.Equal(count, want) {
		t.Errorf("kinds are %v, want %v", count, want)
	}
}

// TestOwnersAreKnown compares the owners and the trusted host with
// context.json.
func TestOwnersAreKnown(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{fixtureFolder, languagesFolder, luresFolder} {
		checkOwners(t, folder)
	}
}

func checkOwners(t *testing.T, folder string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "context.json"))
	if err != nil {
		t.Fatal(err)
	}
	var context struct {
		Authserv string `json:"authserv_id"`
		Owners   map[string]struct {
			Addresses []string `json:"addresses"`
		} `json:"owners"`
	}
	if err := json.Unmarshal(data, &context); err != nil {
		t.Fatal(err)
	}

	for _, l := range readLabelled(t, folder) {
		addresses := context.Owners[l.Owner].Addresses
		received := "for <" + strings.Join(addresses[:min(1, len(addresses))], "") + ">"
		if len(addresses) == 0 || !strings.Contains(l.Raw, received) {
			t.Errorf("%s of %q was not received %s", l.ID, l.Owner, received)
		}
		if !strings.Contains(l.Raw, "by "+context.Authserv+" with") {
			t.Errorf("%s has not passed %s", l.ID, context.Authserv)
		}
	}
}

// shingles returns all runs of eight words of a text.
func shingles(text string) []string {
	words := regexp.MustCompile(`[\pL\pN]+`).FindAllString(strings.ToLower(text), -1)
	var all []string
	for i := 8; i <= len(words); i++ {
		all = append(all, strings.Join(words[i-8:i], " "))
	}
	return all
}

func body(raw string) string {
	_, text, _ := strings.Cut(raw, "\n\n")
	return text
}

// TestTrainingSharesNoText keeps figures on the project's sets cold: no run of
// eight words is also in the training mail or its sentences.
func TestTrainingSharesNoText(t *testing.T) {
	t.Parallel()
	from := map[string]string{}
	for _, l := range slices.Concat(readLabelled(t, fixtureFolder), readLabelled(t, languagesFolder), readLabelled(t, luresFolder)) {
		for _, s := range shingles(body(l.Raw)) {
			from[s] = l.ID
		}
	}
	sentences, err := os.ReadFile(filepath.Join(trainingFolder, "sentences.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"sentences.tsv": string(sentences)}
	for _, l := range readLabelled(t, trainingFolder) {
		texts[l.ID] = body(l.Raw)
	}

	for name, text := range texts {
		for _, s := range shingles(text) {
			if id, ok := from[s]; ok {
				t.Errorf("%s of the training set and %s of a measured set both have %q", name, id, s)
			}
		}
	}
}

func TestSentencesAreValid(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(trainingFolder, "sentences.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	seen := map[string]bool{}

	for line := range strings.Lines(string(data)) {
		label, sentence, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || label != "Yes" && label != "No" || strings.TrimSpace(sentence) == "" || seen[sentence] {
			t.Errorf("sentences.tsv has the line %q, want Yes or No, a tab, and a sentence that is there once", line)
		}
		seen[sentence] = true
		count[label]++
	}
	if count["Yes"] < leastSentences || count["No"] < leastSentences {
		t.Errorf("sentences.tsv has %d of Yes and %d of No, want %d or more of each", count["Yes"], count["No"], leastSentences)
	}
}

// leastSentences is the least number of sentences of either kind.
const leastSentences = 590

func TestLabelledMailIsSmall(t *testing.T) {
	t.Parallel()
	for folder, most := range map[string]int64{fixtureFolder: 600_000, languagesFolder: 400_000, luresFolder: 150_000, trainingFolder: 700_000} {
		names, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		if size == 0 || size > most {
			t.Errorf("%s has %d bytes, want at most %d", folder, size, most)
		}
	}
}
