package span_test

import (
	"slices"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

// TestLimits resolves days by the sender's clock: on a Sunday evening in New York it is
// Monday in Berlin.
func TestLimits(t *testing.T) {
	t.Parallel()
	newYork := time.FixedZone("", -5*60*60)
	sunday := time.Date(2026, 11, 29, 23, 30, 0, 0, newYork)
	for text, want := range map[string][]string{
		"I will send it by Friday.":               {"by Friday = 2026-12-04"},
		"until tomorrow, or by Monday":            {"until tomorrow = 2026-11-30", "by Monday = 2026-11-30"},
		"before the coming Saturday":              {"before the coming Saturday = 2026-12-05"},
		"bis spätestens Mittwoch, bis übermorgen": {"bis spätestens Mittwoch = 2026-12-02", "bis übermorgen = 2026-12-01"},
		"BIS MORGEN":                           {"BIS MORGEN = 2026-11-30"},
		"by tonight":                           {"by tonight = 2026-11-29"},
		"by Sunday":                            nil, // this day or in a week
		"by next Friday, bis nächsten Freitag": nil, // which week?
		"on Friday, last Friday, Good Friday, by Fridaytown": nil,
	} {
		var got []string
		for _, d := range span.Limits(text, sunday) {
			got = append(got, d.Span.Of(text)+" = "+d.Text())
		}
		if !slices.Equal(got, want) {
			t.Errorf("Limits(%q) = %q, want %q", text, got, want)
		}
	}
	// Years end, and impossible dates have no days.
	if got := span.Limits("by Friday", time.Date(2026, 12, 31, 1, 0, 0, 0, time.UTC)); len(got) != 1 || got[0].Text() != "2027-01-01" {
		t.Errorf("Limits() at the end of a year = %v", got)
	}
	if got := append(span.Limits("by Friday", time.Time{}), span.Limits("by Friday", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))...); len(got) > 0 {
		t.Errorf("Limits() without a date = %v", got)
	}
}
