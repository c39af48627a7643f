package model_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/documenttest"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/reference/triage.md")

// fileSettings returns the settings of a file of models, with their values and
// meanings. NAME is any name.
func fileSettings() [][]string {
	return [][]string{
		{"`servers.NAME.url`", "required", "the address: `http://`, `https://`, or `unix://` and an absolute path"},
		{"`servers.NAME.dialect`", strings.Trim(fmt.Sprint(model.Dialects()), "[]") + "; auto", "the dialect of the server"},
		{"`servers.NAME.networks`", "private networks; none", "the networks, apart from loopback, in which the server may be"},
		{"`servers.NAME.slots`", "1 to 256; the server's number, or 1", "the number of concurrent questions"},
		{"`tiers.TIER.server`", "required", "a name under `servers`"},
		{"`tiers.TIER.model`", "required", "the server's name of the model"},
		{"`tiers.TIER.context`", "512 to 1048576 tokens; the server's size, or 4096", "the size of the context, for question and answer together; the same for all tiers with one model"},
		{"`tiers.TIER.pack`", "1 to 8; 8", "the largest number of messages in one question; `t3` always has one"},
		{"`dictation.server`", "required", "a name under `servers`, which has `/v1/audio/transcriptions`"},
		{"`dictation.model`", "required", "the server's name of the model that transcribes recordings"},
		{"`calibrations`", "a path; none", "the file of `countersign triage calibrate`"},
	}
}

func TestDocumentHasTheSettingsOfTheFile(t *testing.T) {
	t.Parallel()
	documenttest.Has(t, *update, documenttest.Table("| setting of the file of models | values; default | meaning |", fileSettings()))
}

// TestTableHasEverySettingOfTheFile compares the table with the names that the
// reader of the file knows, which it lists if a name is unknown.
func TestTableHasEverySettingOfTheFile(t *testing.T) {
	t.Parallel()
	documented := map[string][]string{}
	for _, row := range fileSettings() {
		path := strings.Trim(row[0], "`")
		at := strings.LastIndexByte(path, '.') + 1
		documented[path[:at]] = append(documented[path[:at]], path[at:])
	}
	documented[""] = append(documented[""], "servers", "tiers", "dictation")
	for prefix, text := range map[string]string{
		"":              "unknown: 1",
		"servers.NAME.": "servers: {here: {unknown: 1}}",
		"tiers.TIER.":   "tiers: {t1: {unknown: 1}}",
		"dictation.":    "dictation: {unknown: 1}",
	} {
		_, err := model.Parse([]byte(text))
		if err == nil {
			t.Fatalf("Parse(%q) accepts an unknown setting", text)
		}
		_, list, _ := strings.Cut(err.Error(), "known fields: ")
		list, _, _ = strings.Cut(list, "\n")
		known, want := strings.Split(list, ", "), documented[prefix]
		slices.Sort(known)
		slices.Sort(want)
		if !slices.Equal(known, want) {
			t.Errorf("the file has %q at %q, the table %q", known, prefix, want)
		}
	}
}

// TestGuideHasEveryTier checks that the page about local models has a row for
// each tier that can have a model.
func TestGuideHasEveryTier(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/triage-models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, questions, _ := strings.Cut(string(page), "\n## Questions\n")
	for _, tier := range model.Tiers() {
		if !strings.Contains(questions, "\n| `"+tier+"` | ") {
			t.Errorf("docs/triage-models.md has no row for the tier %s", tier)
		}
		if !strings.Contains(string(page), "\n  "+tier+":") {
			t.Errorf("the example in docs/triage-models.md has no model for the tier %s", tier)
		}
	}
}
