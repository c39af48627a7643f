package span_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

var sent = time.Date(2025, 1, 20, 9, 0, 0, 0, time.UTC)

func TestDates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"payment due by February 15, 2025.":                  {"February 15, 2025 = 2025-02-15"},
		"Feb. 3 at 2:30 pm works":                            {"Feb. 3 at 2:30 pm = 2025-02-03T14:30:00Z"},
		"on 15 March, or 16th March 2026, 14:00":             {"15 March = 2025-03-15", "16th March 2026, 14:00 = 2026-03-16T14:00:00Z"},
		"since Jan 3":                                        {"Jan 3 = 2026-01-03"},
		"fällig am 15.02.2025 um 10:15 Uhr":                  {"15.02.2025 um 10:15 Uhr = 2025-02-15T10:15:00Z"},
		"Treffen am 3. März":                                 {"3. März = 2025-03-03"},
		"le 1er août 2025 à 9h30":                            {"1er août 2025 à 9h30 = 2025-08-01T09:30:00Z"},
		"2025-02-15T10:00 and 2025-02-16":                    {"2025-02-15T10:00 = 2025-02-15T10:00:00Z", "2025-02-16 = 2025-02-16"},
		"10 am on May 5 at 10 am":                            {"May 5 at 10 am = 2025-05-05T10:00:00Z"},
		"February 30, 2025 or 31.02.2025 or 2025-13-01":      nil,
		"at 25:00 on 2025-02-15 25:00":                       nil,
		"you may 5 times, version 1.2.2025x, call 555":       {"may 5 = 2025-05-05"},
		"invoice 20250215, 1/2 and 12/13, marching 5 people": nil,
		"15.02.2025 15.03.2025, 16.04.2025\n10.30 Uhr":       {"15.02.2025 = 2025-02-15", "15.03.2025 = 2025-03-15", "16.04.2025 = 2025-04-16"},
		"el 30 de noviembre de 2026 a las 10:00":             {"30 de noviembre de 2026 a las 10:00 = 2026-11-30T10:00:00Z"},
		"12月4日まで、2026年12月1日 14:00":                           {"12月4日 = 2025-12-04", "2026年12月1日 14:00 = 2026-12-01T14:00:00Z"},
		"27/11/2026, 11/27/2026, 10/12/2026, 30/30/2026":     {"27/11/2026 = 2026-11-27", "11/27/2026 = 2026-11-27"},
		"tomorrow, next week, soon":                          nil,
	} {
		var got []string
		for _, d := range span.Dates(text, sent, time.UTC) {
			got = append(got, d.Span.Of(text)+" = "+d.Text())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Dates(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestDatesInAZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*60*60)

	got := span.Dates("May 5 at 10:00", sent, zone)

	if len(got) != 1 || got[0].Text() != "2025-05-05T10:00:00+02:00" {
		t.Errorf("Dates() = %v", got)
	}
}

func TestPhones(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Tel. +49 (0)30 1234-567, Fax 030/7654321": {"+49 (0)30 1234-567", "030/7654321"},
		"555-123-4567 or (212) 555-0100.":          {"555-123-4567", "(212) 555-0100"},
		"order 12345678, 2025-02-15, 1.000.000":    nil,
		"+12 34":                                   nil,
	} {
		var got []string
		for _, s := range span.Phones(text) {
			got = append(got, s.Of(text))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Phones(%q) (-want +got):\n%s", text, diff)
		}
	}
}

// TestLongTexts reads texts of one form of dates, which takes minutes in quadratic
// time.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	const n = 3000
	for _, one := range []string{"2025-02-15 ", "15.02.2025\n", "May 5 ", "5 May x\n"} {
		text := strings.Repeat(one, n)
		if got := span.Dates(text, sent, time.UTC); len(got) != n {
			t.Errorf("Dates(%q, repeated) = %d dates, want %d", one, len(got), n)
		}
		span.SignatureOf(text, "A")
	}
}

// FuzzSpans checks that every span is a part of the text and that every date is
// the one that its span has by itself.
func FuzzSpans(f *testing.F) {
	f.Add("due by February 15, 2025, 14:00; call +49 30 1234567")
	f.Add("3. März 10.02.2025 1er août")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range span.Dates(text, sent, time.UTC) {
			part := d.Span.Of(text)
			if again := span.Dates(part, sent, time.UTC); part == "" || len(again) != 1 || again[0].Text() != d.Text() {
				t.Errorf("Dates(%q) = %q at %v, and %v by itself", text, d.Text(), d.Span, again)
			}
		}
		for _, s := range span.Phones(text) {
			if s.Of(text) == "" {
				t.Errorf("Phones(%q) = %v", text, s)
			}
		}
	})
}
