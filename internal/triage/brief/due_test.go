package brief_test

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/brief"
)

// TestDueTimes holds due times in zones whose clocks change: a missing hour, one that
// is shown twice, half an hour, a change at midnight, and a day that is left out.
func TestDueTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		zone, morning, after string
		// next are the next due times in a row.
		next []string
	}{
		"an hour is missing":       {"Europe/Berlin", "02:30", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"before the missing hour":  {"Europe/Berlin", "01:59", "2026-03-28T12:00:00Z", []string{"2026-03-29T00:59:00Z", "2026-03-29T23:59:00Z"}},
		"after the missing hour":   {"Europe/Berlin", "03:00", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		"an hour is shown twice":   {"Europe/Berlin", "02:30", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"after the doubled hour":   {"America/New_York", "07:30", "2026-10-31T12:00:00Z", []string{"2026-11-01T12:30:00Z", "2026-11-02T12:30:00Z"}},
		"half an hour is missing":  {"Australia/Lord_Howe", "02:15", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"half an hour twice":       {"Australia/Lord_Howe", "01:45", "2026-04-04T00:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"midnight is missing":      {"America/Santiago", "00:30", "2026-09-05T12:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:30:00Z"}},
		"a day is left out":        {"Pacific/Apia", "07:00", "2011-12-29T12:00:00Z", []string{"2011-12-29T17:00:00Z", "2011-12-30T17:00:00Z"}},
		"a zone without changes":   {"Asia/Tokyo", "07:00", "2026-01-01T00:00:00Z", []string{"2026-01-01T22:00:00Z", "2026-01-02T22:00:00Z"}},
		"the end of a year":        {"UTC", "00:00", "2026-12-31T23:59:59Z", []string{"2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"}},
		"an unknown zone is UTC":   {"Mars/Olympus", "07:00", "2026-01-01T00:00:00Z", []string{"2026-01-01T07:00:00Z"}},
		"a quarter of an hour off": {"Asia/Kathmandu", "07:00", "2026-01-01T00:00:00Z", []string{"2026-01-01T01:15:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := brief.Settings{Zone: test.zone, Morning: test.morning}
			at := instant(t, test.after)
			for _, want := range test.next {
				next, ok := s.Next(at)
				if !ok || !next.At.Equal(instant(t, want)) || next.Kind != brief.Morning {
					t.Fatalf("Next(%s) = %s, %v, want %s", at.UTC(), next.At.UTC(), ok, want)
				}
				if last, ok := s.Last(at, next.At); !ok || !last.At.Equal(next.At) {
					t.Errorf("Last(%s, %s) = %s, %v", at.UTC(), next.At.UTC(), last.At.UTC(), ok)
				}
				if _, ok := s.Last(next.At, next.At.Add(time.Hour)); ok {
					t.Errorf("a second brief is due within an hour of %s", next.At.UTC())
				}
				at = next.At
			}
		})
	}
}

// TestEachDayHasEachBriefOnce walks minute by minute through a year of each zone with
// changes, and counts the due times.
func TestEachDayHasEachBriefOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "Asia/Tehran"} {
		zone := brief.Location(name)
		s := brief.Settings{Zone: name, Morning: "02:30", Evening: "23:45"}
		at, end := time.Date(2026, 1, 1, 0, 0, 0, 0, zone), time.Date(2027, 1, 1, 0, 0, 0, 0, zone)
		days := map[string]int{}
		for {
			next, ok := s.Next(at)
			if !ok || !next.At.After(at) {
				t.Fatalf("%s: Next(%s) = %s, %v", name, at, next.At, ok)
			}
			if !next.At.Before(end) {
				break
			}
			at = next.At
			days[at.In(zone).Format(time.DateOnly)+string(next.Kind)]++
		}
		if len(days) != 2*365 {
			t.Errorf("%s: %d briefs in a year, want %d", name, len(days), 2*365)
		}
		for day, n := range days {
			if n != 1 {
				t.Errorf("%s: %d briefs on %s", name, n, day)
			}
		}
	}
}

// TestAnOutageIsCoveredByOneBrief passes over the due times of an outage.
func TestAnOutageIsCoveredByOneBrief(t *testing.T) {
	t.Parallel()
	s := brief.Settings{Zone: "Europe/Berlin", Morning: "07:00", Evening: "18:00"}
	last, ok := s.Last(instant(t, "2026-03-20T12:00:00Z"), instant(t, "2026-03-30T17:30:00Z"))
	if !ok || last.Kind != brief.Evening || !last.At.Equal(instant(t, "2026-03-30T16:00:00Z")) {
		t.Errorf("Last = %s at %s, %v", last.Kind, last.At.UTC(), ok)
	}
	if _, ok := s.Last(last.At, instant(t, "2026-03-31T04:59:59Z")); ok {
		t.Error("a second brief is due before the next morning")
	}
	// The clock jumps back: nothing is due again.
	if _, ok := s.Last(last.At, instant(t, "2026-03-29T17:30:00Z")); ok {
		t.Error("a brief is due again after the clock jumped back")
	}
}

func TestCheckSettings(t *testing.T) {
	t.Parallel()
	own := []string{"ann@example.org"}
	for name, test := range map[string]struct {
		settings brief.Settings
		ok       bool
	}{
		"times and channels":  {brief.Settings{Zone: "UTC", Morning: "07:30", Channels: []brief.Channel{{To: "Ann@example.org"}, {Source: "slack", Channel: "C1"}}}, true},
		"another's address":   {brief.Settings{Zone: "UTC", Channels: []brief.Channel{{To: "eve@example.org"}}}, false},
		"two addresses":       {brief.Settings{Zone: "UTC", Channels: []brief.Channel{{To: "ann@example.org, eve@example.org"}}}, false},
		"both":                {brief.Settings{Zone: "UTC", Channels: []brief.Channel{{To: "ann@example.org", Source: "slack"}}}, false},
		"neither":             {brief.Settings{Zone: "UTC", Channels: []brief.Channel{{}}}, false},
		"twice":               {brief.Settings{Zone: "UTC", Channels: []brief.Channel{{Source: "slack"}, {Source: "slack"}}}, false},
		"no zone":             {brief.Settings{Morning: "07:30"}, false},
		"the machine's zone":  {brief.Settings{Zone: "Local"}, false},
		"a path for a zone":   {brief.Settings{Zone: "../../etc/passwd"}, false},
		"no time":             {brief.Settings{Zone: "UTC", Evening: "24:00"}, false},
		"the same time twice": {brief.Settings{Zone: "UTC", Morning: "07:00", Evening: "07:00"}, false},
	} {
		if err := test.settings.Check(own); (err == nil) != test.ok {
			t.Errorf("%s: Check = %v", name, err)
		}
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
