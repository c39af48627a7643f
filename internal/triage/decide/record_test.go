package decide_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// stored returns a value after it was stored as JSON.
func stored[T any](t interface{ Fatal(...any) }, v T) (out T) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRecordDecidesAsTheFacts decides about random facts again from their record.
func TestRecordDecidesAsTheFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		record := decide.RecordOf(f)
		if record == nil {
			t.Fatal("the facts are not recorded")
		}

		again := stored(t, *record).Facts(stored(t, f.Signals), stored(t, f.Authentication), stored(t, f.Prediction))
		again.Settings, again.Travelling, again.Answered = f.Settings, f.Travelling, f.Answered

		if diff := cmp.Diff(decide.Decide(f), decide.Decide(again)); diff != "" {
			t.Errorf("from the record (-facts +record):\n%s", diff)
		}
	})
}

// TestRecordIsBounded has headers that a sender made large.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	for name, to := range map[string][]string{
		"many": slices.Repeat([]string{"a@b.example"}, 201), "long": {strings.Repeat("a", 320) + "@b.example"},
	} {
		if decide.RecordOf(decide.Facts{Headers: decide.Headers{To: to}}) != nil {
			t.Errorf("%s addresses are recorded", name)
		}
	}
}
