package quiethours_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

func compile(t testing.TB, zone string, windows ...quiethours.Window) *quiethours.Schedule {
	t.Helper()
	s, err := quiethours.Hours{Timezone: zone, Windows: windows}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func window(from, until string, days ...string) quiethours.Window {
	return quiethours.Window{From: from, Until: until, Days: days}
}

func TestQuietUntil(t *testing.T) {
	t.Parallel()

	night := []quiethours.Window{window("22:00", "07:00+1")}
	small := []quiethours.Window{window("01:30", "02:30")}
	for _, zone := range []struct {
		name    string
		windows []quiethours.Window
		// rows are pairs of now and the end; "" means not quiet.
		rows [][2]string
	}{
		{"Europe/Berlin", night, [][2]string{
			{"2026-03-28T20:59:59Z", ""},
			// The clock skips from 02:00 to 03:00: a night of eight hours.
			{"2026-03-28T21:00:00Z", "2026-03-29T05:00:00Z"},
			{"2026-03-29T04:59:59.999Z", "2026-03-29T05:00:00Z"},
			{"2026-03-29T05:00:00Z", ""},
			// And back from 03:00 to 02:00: a night of ten.
			{"2026-10-24T19:59:59Z", ""},
			{"2026-10-24T20:00:00Z", "2026-10-25T06:00:00Z"},
			{"2026-10-25T05:59:59Z", "2026-10-25T06:00:00Z"},
			{"2026-10-25T06:00:00Z", ""},
		}},
		{"Europe/Berlin", small, [][2]string{
			// 02:30 is skipped, so the window ends with the change.
			{"2026-03-29T00:29:59Z", ""},
			{"2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
			{"2026-03-29T01:00:00Z", ""},
			// 02:30 occurs twice, so it ends with the second.
			{"2026-10-24T23:30:00Z", "2026-10-25T01:30:00Z"},
			{"2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"},
			{"2026-10-25T01:30:00Z", ""},
		}},
		{"Europe/Berlin", []quiethours.Window{window("02:15", "04:00")}, [][2]string{
			// 02:15 is skipped, so the window begins with the change.
			{"2026-03-29T00:59:59Z", ""},
			{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"},
			// It occurs twice, so it begins with the first.
			{"2026-10-25T00:14:59Z", ""},
			{"2026-10-25T00:15:00Z", "2026-10-25T03:00:00Z"},
			{"2026-10-25T01:05:00Z", "2026-10-25T03:00:00Z"},
		}},
		{"Europe/Berlin", []quiethours.Window{window("02:10", "02:50")}, [][2]string{
			// All of it is skipped.
			{"2026-03-29T00:59:59Z", ""},
			{"2026-03-29T01:00:00Z", ""},
			{"2026-10-25T00:10:00Z", "2026-10-25T01:50:00Z"},
		}},
		{"America/Sao_Paulo", []quiethours.Window{window("22:00", "24:00"), window("00:00", "00:30")}, [][2]string{
			// 2018-11-04 began at 01:00: 00:00 and 00:30 are skipped.
			{"2018-11-04T01:00:00Z", "2018-11-04T03:00:00Z"},
			{"2018-11-04T02:59:59Z", "2018-11-04T03:00:00Z"},
			{"2018-11-04T03:00:00Z", ""},
			// 2019-02-16 had 23:00 twice.
			{"2019-02-17T00:00:00Z", "2019-02-17T03:30:00Z"},
			{"2019-02-17T02:30:00Z", "2019-02-17T03:30:00Z"},
			{"2019-02-17T03:30:00Z", ""},
			// No more since 2019.
			{"2026-11-01T02:59:59Z", "2026-11-01T03:30:00Z"},
		}},
		{"Asia/Kolkata", night, [][2]string{
			{"2026-06-01T16:29:59Z", ""},
			{"2026-06-01T16:30:00Z", "2026-06-02T01:30:00Z"},
			{"2026-06-02T01:30:00Z", ""},
		}},
		{"Australia/Lord_Howe", small, [][2]string{
			// On 2026-10-04 the clock skips from 02:00 to 02:30.
			{"2026-10-03T15:00:00Z", "2026-10-03T15:30:00Z"},
			{"2026-10-03T15:30:00Z", ""},
			// On 2026-04-05 it goes back from 02:00 to 01:30.
			{"2026-04-04T14:29:59Z", ""},
			{"2026-04-04T14:30:00Z", "2026-04-04T16:00:00Z"},
			{"2026-04-04T15:59:59Z", "2026-04-04T16:00:00Z"},
			{"2026-04-04T16:00:00Z", ""},
		}},
		{"Pacific/Apia", night, [][2]string{
			// 2011-12-30 was skipped: Thursday's night ends with the change, at
			// which Friday's begins.
			{"2011-12-30T08:00:00Z", "2011-12-30T17:00:00Z"},
			{"2011-12-30T10:00:00Z", "2011-12-30T17:00:00Z"},
			{"2011-12-30T17:00:00Z", ""},
		}},
		{"Pacific/Apia", []quiethours.Window{window("09:00", "17:00", "fri")}, [][2]string{
			{"2011-12-23T18:00:00Z", ""},
			{"2011-12-23T20:00:00Z", "2011-12-24T03:00:00Z"},
			{"2011-12-30T09:59:59Z", ""},
			{"2011-12-30T10:00:00Z", ""},
			{"2012-01-05T19:00:00Z", "2012-01-06T03:00:00Z"},
		}},
		{"Pacific/Apia", []quiethours.Window{window("03:15", "03:45")}, [][2]string{
			// On 2012-04-01 the clock went back from 04:00 to 03:00.
			{"2012-03-31T13:14:59Z", ""},
			{"2012-03-31T13:15:00Z", "2012-03-31T14:45:00Z"},
			{"2012-03-31T14:45:00Z", ""},
			// On 2012-09-30 it skipped from 03:00 to 04:00.
			{"2012-09-29T13:59:59Z", ""},
			{"2012-09-29T14:00:00Z", ""},
			{"2012-09-30T13:20:00Z", "2012-09-30T13:45:00Z"},
		}},
		{"UTC", []quiethours.Window{
			window("18:00", "24:00", "fri"), window("00:00", "24:00", "sat", "sun"), window("00:00", "08:00", "mon"),
			window("07:30", "09:00", "mon"),
		}, [][2]string{
			{"2026-01-02T17:59:59Z", ""},
			{"2026-01-02T18:00:00Z", "2026-01-05T09:00:00Z"},
			{"2026-01-04T12:00:00Z", "2026-01-05T09:00:00Z"},
			{"2026-01-05T09:00:00Z", ""},
			{"2026-01-06T08:00:00Z", ""},
		}},
		{"UTC", []quiethours.Window{window("12:00", "12:00+1", "sun")}, [][2]string{
			{"1969-12-28T11:59:59.5Z", ""},
			{"1969-12-28T12:00:00Z", "1969-12-29T12:00:00Z"},
			{"1969-12-29T11:59:59.5Z", "1969-12-29T12:00:00Z"},
			{"2026-01-05T11:00:00+00:00", "2026-01-05T12:00:00Z"},
		}},
	} {
		t.Run(zone.name+" "+zone.windows[0].From, func(t *testing.T) {
			t.Parallel()

			s := compile(t, zone.name, zone.windows...)
			for _, row := range zone.rows {
				end, quiet := s.QuietUntil(at(t, row[0]))

				got := ""
				if quiet {
					got = end.Format(time.RFC3339Nano)
				}
				if got != row[1] {
					t.Errorf("QuietUntil(%s) = %q, want %q", row[0], got, row[1])
				}
			}
		})
	}
}

// shown is the model: it reports whether a window contains the wall clock time.
func shown(zone *time.Location, windows []quiethours.Window, now time.Time) bool {
	local := now.In(zone)
	minutes := func(text string) int {
		text, next := strings.CutSuffix(text, "+1")
		n := int(text[0]-'0')*600 + int(text[1]-'0')*60 + int(text[3]-'0')*10 + int(text[4]-'0')
		if next {
			n += 1440
		}
		return n
	}
	for back := range 2 {
		date := time.Date(local.Year(), local.Month(), local.Day()-back, 0, 0, 0, 0, time.UTC)
		day := strings.ToLower(date.Weekday().String()[:3])
		clock := local.Hour()*60 + local.Minute() + 1440*back
		for _, w := range windows {
			if (len(w.Days) == 0 || slices.Contains(w.Days, day)) && minutes(w.From) <= clock && clock < minutes(w.Until) {
				return true
			}
		}
	}
	return false
}

// TestQuietUntilAgreesWithTheClock checks every minute around clock changes.
func TestQuietUntilAgreesWithTheClock(t *testing.T) {
	t.Parallel()

	changes := map[string][]string{
		"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2045-10-29T01:00:00Z"},
		"America/Sao_Paulo":   {"2018-11-04T03:00:00Z", "2019-02-17T02:00:00Z"},
		"Asia/Kolkata":        {"2026-01-01T00:00:00Z"},
		"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"},
		"Pacific/Apia":        {"2011-12-30T10:00:00Z", "2012-03-31T14:00:00Z"},
		"Africa/Casablanca":   {"2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"},
	}
	zones := slices.Sorted(func(yield func(string) bool) {
		for zone := range changes {
			if !yield(zone) {
				return
			}
		}
	})
	clock := func(n int) string {
		return time.Date(2000, 1, 1, 0, n%1440, 0, 0, time.UTC).Format("15:04")
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var windows []quiethours.Window
		for range rapid.IntRange(1, 3).Draw(t, "windows") {
			from := rapid.IntRange(0, 1439).Draw(t, "from")
			until := from + rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(1, 1440)).Draw(t, "minutes")
			w := quiethours.Window{From: clock(from), Until: clock(until)}
			if until >= 1440 {
				w.Until += "+1"
			}
			w.Days = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}), 0, 6, rapid.ID).Draw(t, "days")
			windows = append(windows, w)
		}
		s, err := quiethours.Hours{Timezone: name, Windows: windows}.Compile()
		if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok && invalid.Fields[0].Rule == "always" {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		change, err := time.Parse(time.RFC3339, rapid.SampledFrom(changes[name]).Draw(t, "change"))
		if err != nil {
			t.Fatal(err)
		}
		// For a while before and after the clock goes back, more time may be
		// quiet than the clock shows.
		_, before := change.Add(-time.Second).In(zone).Zone()
		_, after := change.In(zone).Zone()
		doubled := time.Duration(max(before-after, 0)) * time.Second
		ambiguous := func(now time.Time) bool {
			return !now.Before(change.Add(-doubled)) && now.Before(change.Add(doubled))
		}
		now := change.Add(time.Duration(rapid.IntRange(-30*60, 10*60).Draw(t, "start")) * time.Minute)
		var lastEnd time.Time
		intervals := s.Intervals(now, now.Add(20*time.Hour))
		for range 20 * 60 {
			end, quiet := s.QuietUntil(now)
			if within := slices.ContainsFunc(intervals, func(i wire.QuietInterval) bool {
				return !now.Before(i.From) && now.Before(i.Until)
			}); within != quiet {
				t.Fatalf("at %s Intervals has quiet %v, want %v", now, within, quiet)
			}
			inside := shown(zone, windows, now)
			switch {
			case inside && !quiet:
				t.Fatalf("%s is in a window, yet not quiet", now)
			case quiet && !inside && !ambiguous(now):
				t.Fatalf("%s is in no window, yet quiet until %s", now, end)
			case quiet && !end.After(now):
				t.Fatalf("%s is quiet until %s, which has passed", now, end)
			case now.Before(lastEnd) && (!quiet || !end.Equal(lastEnd)):
				t.Fatalf("%s is quiet %v until %s, but a minute before it was until %s", now, quiet, end, lastEnd)
			}
			if quiet {
				if _, still := s.QuietUntil(end); still {
					t.Fatalf("at %s, when it ends, it is quiet still", end)
				}
			}
			lastEnd = end
			now = now.Add(time.Minute)
		}
	})
}

func TestIntervals(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		zone, from string
		windows    []quiethours.Window
		want       []string
		changes    []string
	}{
		"a window past midnight": {
			"Europe/Berlin", "2026-01-05T12:00:00Z", []quiethours.Window{window("22:00", "07:00+1", "mon")},
			[]string{"2026-01-05T22:00:00+01:00 to 2026-01-06T07:00:00+01:00"}, nil,
		},
		"a beginning in a window": {
			"UTC", "2026-01-06T03:00:00Z", []quiethours.Window{window("22:00", "07:00+1", "mon", "wed")},
			[]string{"2026-01-06T03:00:00Z to 2026-01-06T07:00:00Z", "2026-01-07T22:00:00Z to 2026-01-08T07:00:00Z"}, nil,
		},
		"windows that adjoin": {
			"UTC", "2026-01-09T12:00:00Z", []quiethours.Window{window("00:00", "24:00", "sat", "sun"), window("20:00", "24:00", "fri")},
			[]string{"2026-01-09T20:00:00Z to 2026-01-12T00:00:00Z"}, nil,
		},
		"a night of eight hours": {
			"Europe/Berlin", "2026-03-28T12:00:00Z", []quiethours.Window{window("22:00", "07:00+1", "sat")},
			[]string{"2026-03-28T22:00:00+01:00 to 2026-03-29T07:00:00+02:00"}, []string{"2026-03-29T03:00:00+02:00 by 3600"},
		},
		"a night of ten": {
			"Europe/Berlin", "2026-10-24T12:00:00Z", []quiethours.Window{window("22:00", "07:00+1", "sat")},
			[]string{"2026-10-24T22:00:00+02:00 to 2026-10-25T07:00:00+01:00"}, []string{"2026-10-25T02:00:00+01:00 by -3600"},
		},
		"a midnight that is skipped": {
			"America/Sao_Paulo", "2018-11-03T12:00:00Z", []quiethours.Window{window("00:00", "06:00", "sun")},
			[]string{"2018-11-04T01:00:00-02:00 to 2018-11-04T06:00:00-02:00"}, []string{"2018-11-04T01:00:00-02:00 by 3600"},
		},
		"an hour before midnight that occurs twice": {
			"America/Sao_Paulo", "2019-02-16T12:00:00Z", []quiethours.Window{window("23:00", "24:00", "sat")},
			[]string{"2019-02-16T23:00:00-02:00 to 2019-02-17T00:00:00-03:00"}, []string{"2019-02-16T23:00:00-03:00 by -3600"},
		},
		"half an hour": {
			"Australia/Lord_Howe", "2026-04-04T00:00:00Z", []quiethours.Window{window("01:30", "02:00", "sun")},
			[]string{"2026-04-05T01:30:00+11:00 to 2026-04-05T02:00:00+10:30"}, []string{"2026-04-05T01:30:00+10:30 by -1800"},
		},
		"a window in skipped time": {
			"Europe/Berlin", "2026-03-28T12:00:00Z", []quiethours.Window{window("02:15", "02:45", "sun")},
			nil, []string{"2026-03-29T03:00:00+02:00 by 3600"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tt.zone, tt.windows...)
			from := at(t, tt.from)

			var got, changes []string
			for _, i := range s.Intervals(from, from.Add(72*time.Hour)) {
				got = append(got, i.From.Format(time.RFC3339)+" to "+i.Until.Format(time.RFC3339))
			}
			for _, c := range s.ClockChanges(from, from.Add(72*time.Hour)) {
				changes = append(changes, fmt.Sprintf("%s by %d", c.At.Format(time.RFC3339), c.BySeconds))
			}

			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Intervals (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.changes, changes); diff != "" {
				t.Errorf("ClockChanges (-want +got):\n%s", diff)
			}
		})
	}
}

// TestQuietUntilDoesNotAllocate cannot run in parallel, since it counts
// allocations.
func TestQuietUntilDoesNotAllocate(t *testing.T) {
	s := compile(t, "Europe/Berlin", window("22:00", "07:00+1"), window("12:00", "13:00", "sun"))
	now := at(t, "2026-03-28T23:00:00Z")

	if n := testing.AllocsPerRun(100, func() { s.QuietUntil(now) }); n != 0 {
		t.Errorf("QuietUntil allocates %v times", n)
	}
}

func TestCompileRejectsInvalidHours(t *testing.T) {
	t.Parallel()

	ok := []quiethours.Window{window("22:00", "07:00+1")}
	one := func(from, until string, days ...string) quiethours.Hours {
		return quiethours.Hours{Timezone: "UTC", Windows: []quiethours.Window{window(from, until, days...)}}
	}
	for name, test := range map[string]struct {
		quiet         quiethours.Hours
		pointer, says string
	}{
		"no zone":                  {quiethours.Hours{Windows: ok}, "/timezone", "IANA"},
		"an unknown zone":          {quiethours.Hours{Timezone: "Europe/Atlantis", Windows: ok}, "/timezone", "IANA"},
		"the machine's zone":       {quiethours.Hours{Timezone: "Local", Windows: ok}, "/timezone", "IANA"},
		"a file of another kind":   {quiethours.Hours{Timezone: "tzdata.zi", Windows: ok}, "/timezone", "IANA"},
		"a way out":                {quiethours.Hours{Timezone: "../UTC", Windows: ok}, "/timezone", "IANA"},
		"leap seconds":             {quiethours.Hours{Timezone: "right/UTC", Windows: ok}, "/timezone", "IANA"},
		"no windows":               {quiethours.Hours{Timezone: "UTC"}, "/windows", "delete"},
		"too many windows":         {quiethours.Hours{Timezone: "UTC", Windows: make([]quiethours.Window, 51)}, "/windows", "50"},
		"no from":                  {one("", "07:00"), "/windows/0/from", "HH:MM"},
		"a short time":             {one("7:00", "08:00"), "/windows/0/from", "HH:MM"},
		"a long hour":              {one("24:00", "24:00"), "/windows/0/from", "23:59"},
		"seconds":                  {one("07:00", "08:00:00"), "/windows/0/until", "HH:MM"},
		"sixty minutes":            {one("07:00", "08:60"), "/windows/0/until", "HH:MM"},
		"24:00 of the next day":    {one("07:00", "24:00+1"), "/windows/0/until", "HH:MM"},
		"the day after the next":   {one("07:00", "07:00+2"), "/windows/0/until", "HH:MM"},
		"an end before the start":  {one("22:00", "07:00"), "/windows/0/until", "07:00+1"},
		"an end at the start":      {one("22:00", "22:00"), "/windows/0/until", "+1"},
		"more than a day":          {one("07:00", "07:01+1"), "/windows/0/until", "24 hours"},
		"an unknown day":           {one("07:00", "08:00", "mon", "Tuesday"), "/windows/0/days/1", "tue"},
		"a day twice":              {one("07:00", "08:00", "mon", "mon"), "/windows/0/days/1", "already"},
		"the whole week":           {one("00:00", "24:00"), "/windows", "pause"},
		"the whole week by others": {one("12:00", "12:00+1"), "/windows", "pause"},
		"a negative spread":        {quiethours.Hours{Timezone: "UTC", Windows: ok, Spread: new(envelope.Duration(-1))}, "/spread", "6h"},
		"a day's spread":           {quiethours.Hours{Timezone: "UTC", Windows: ok, Spread: new(envelope.Duration(24 * time.Hour))}, "/spread", "6h"},
		"an endless spread":        {quiethours.Hours{Timezone: "UTC", Windows: ok, Spread: new(envelope.Duration(1 << 62))}, "/spread", "6h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := test.quiet.Compile()

			e, ok := errors.AsType[*envelope.InvalidError](err)
			if !ok || !errors.Is(err, fault.Invalid) {
				t.Fatalf("Compile = %v, want an InvalidError", err)
			}
			if len(e.Fields) != 1 || e.Fields[0].Pointer != test.pointer || !strings.Contains(e.Fields[0].Message, test.says) {
				t.Errorf("Compile found %+v, want one at %s that says %q", e.Fields, test.pointer, test.says)
			}
		})
	}
}

func TestCompileReportsEveryError(t *testing.T) {
	t.Parallel()

	_, err := quiethours.Hours{Windows: []quiethours.Window{window("x", "y", "z"), window("09:00", "08:00")}}.Compile()

	var got []string
	if e, ok := errors.AsType[*envelope.InvalidError](err); ok {
		for _, f := range e.Fields {
			got = append(got, f.Pointer)
		}
	}
	want := []string{"/timezone", "/windows/0/days/0", "/windows/0/from", "/windows/0/until", "/windows/1/until"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pointers (-want +got):\n%s", diff)
	}
	_, err = quiethours.Hours{Timezone: "UTC", Windows: make([]quiethours.Window, 50)}.Compile()
	if e, ok := errors.AsType[*envelope.InvalidError](err); !ok || len(e.Fields) != 33 {
		t.Errorf("Compile(50 empty windows) = %v, want 33 things", err)
	}
}

func TestHoursAreReadFromJSON(t *testing.T) {
	t.Parallel()

	var got quiethours.Hours
	err := json.Unmarshal([]byte(`{"timezone":"Asia/Kolkata","windows":[{"days":["sat"],"from":"00:00","until":"24:00"}],"spread":"0s"}`), &got)
	if err != nil {
		t.Fatal(err)
	}
	want := quiethours.Hours{Timezone: "Asia/Kolkata", Windows: []quiethours.Window{window("00:00", "24:00", "sat")}, Spread: new(envelope.Duration(0))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Hours (-want +got):\n%s", diff)
	}
	if s, err := got.Compile(); err != nil || s.Spread() != 0 {
		t.Errorf("its spread is %v, %v, want none", s.Spread(), err)
	}
	if s := compile(t, "UTC", window("01:00", "02:00")); s.Spread() != 5*time.Minute {
		t.Errorf("the spread of settings that do not say is %v, want five minutes", s.Spread())
	}
	for text, pointer := range map[string]string{`null`: "/timezone", `{}`: "/timezone", `{"timezone":"UTC"}`: "/windows"} {
		var h quiethours.Hours
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		_, err := h.Compile()

		if e, ok := errors.AsType[*envelope.InvalidError](err); !ok || e.Fields[0].Pointer != pointer {
			t.Errorf("Compile(%s) = %v, want an InvalidError at %q", text, err, pointer)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()

	const n, parts = 10_000, 10
	var count [parts]int
	for range n {
		id := envelope.NewActionID()
		got := quiethours.Spread(id, parts*time.Second)
		if got != quiethours.Spread(id, parts*time.Second) {
			t.Fatal("Spread differs from one time to the next")
		}
		if got < 0 || got >= parts*time.Second {
			t.Fatalf("Spread = %v, want it below %v", got, parts*time.Second)
		}
		count[got/time.Second]++
	}
	for i, c := range count {
		if c < n/parts*8/10 || c > n/parts*12/10 {
			t.Errorf("second %d has %d of %d envelopes, want about a tenth", i, c, n)
		}
	}
	for _, over := range []time.Duration{0, -1} {
		if got := quiethours.Spread(envelope.NewActionID(), over); got != 0 {
			t.Errorf("Spread(%v) = %v, want 0", over, got)
		}
	}
}
