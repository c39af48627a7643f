package invitation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/invitation"
)

// TestOccurrences expands events on days around changes of clocks.
func TestOccurrences(t *testing.T) {
	t.Parallel()
	const windows = "BEGIN:VTIMEZONE\nTZID:W. Europe\nBEGIN:STANDARD\nDTSTART:16011028T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\n" +
		"BEGIN:DAYLIGHT\nDTSTART:16010325T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n"
	for name, test := range map[string]struct {
		event, from string
		days        int
		// want are starts in UTC.
		want   []string
		unread int
	}{
		"a series in its zone, out of summer time": {"DTSTART;TZID=Europe/Berlin:20260601T090000\nDURATION:PT30M\nRRULE:FREQ=DAILY", "2026-10-24", 3, []string{"2026-10-24T07:00", "2026-10-25T08:00", "2026-10-26T08:00"}, 0},
		"into summer time, by its own zone":        {windows + "DTSTART;TZID=W. Europe:20260301T090000\nDTEND;TZID=W. Europe:20260301T100000\nRRULE:FREQ=DAILY", "2026-03-28", 3, []string{"2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"}, 0},
		"in the hour that is left out":             {"DTSTART;TZID=Europe/Berlin:20260301T023000\nRRULE:FREQ=DAILY", "2026-03-29", 1, []string{"2026-03-29T01:30"}, 0},
		"in UTC":                                   {"DTSTART:20260601T070000Z\nRRULE:FREQ=DAILY", "2026-10-25", 1, []string{"2026-10-25T07:00"}, 0},
		"without a zone":                           {"DTSTART:20260601T090000\nRRULE:FREQ=WEEKLY;BYDAY=SU", "2026-10-25", 7, []string{"2026-10-25T08:00"}, 0},
		"in an unknown zone":                       {"DTSTART;TZID=Mars/Base:20261025T090000", "2026-10-25", 1, []string{"2026-10-25T08:00"}, 0},
		"a whole day of 25 hours":                  {"DTSTART;VALUE=DATE:20261025\nDTEND;VALUE=DATE:20261026", "2026-10-25", 1, []string{"2026-10-24T22:00"}, 0},
		"a whole day is over":                      {"DTSTART;VALUE=DATE:20261025", "2026-10-26", 1, nil, 0},
		"days of a birthday":                       {"DTSTART;VALUE=DATE:16041025\nRRULE:FREQ=YEARLY", "2026-10-25", 1, []string{"2026-10-24T22:00"}, 0},
		"an event of several days":                 {"DTSTART;VALUE=DATE:20261020\nDTEND;VALUE=DATE:20261028", "2026-10-25", 1, []string{"2026-10-19T22:00"}, 0},
		"over midnight":                            {"DTSTART;TZID=Europe/Berlin:20261024T220000\nDTEND;TZID=Europe/Berlin:20261025T040000", "2026-10-25", 1, []string{"2026-10-24T20:00"}, 0},
		"ends when the day begins":                 {"DTSTART;TZID=Europe/Berlin:20261024T220000\nDTEND;TZID=Europe/Berlin:20261025T000000", "2026-10-25", 1, nil, 0},
		"with exceptions":                          {"DTSTART;TZID=Europe/Berlin:20261020T090000\nRRULE:FREQ=DAILY\nEXDATE;TZID=Europe/Berlin:20261025T090000,20261026T090000", "2026-10-25", 3, []string{"2026-10-27T08:00"}, 0},
		"with other days":                          {"DTSTART;TZID=Europe/Berlin:20260120T090000\nRDATE;TZID=Europe/Berlin:20261025T090000", "2026-10-25", 1, []string{"2026-10-25T08:00"}, 0},
		"the last of its days":                     {"DTSTART;TZID=Europe/Berlin:20261020T090000\nRRULE:FREQ=DAILY;UNTIL=20261025T080000Z", "2026-10-25", 3, []string{"2026-10-25T08:00"}, 0},
		"until a day":                              {"DTSTART;VALUE=DATE:20261020\nRRULE:FREQ=DAILY;UNTIL=20261025", "2026-10-25", 3, []string{"2026-10-24T22:00"}, 0},
		"counted":                                  {"DTSTART:20261020T090000Z\nRRULE:FREQ=DAILY;COUNT=6", "2026-10-25", 3, []string{"2026-10-25T09:00"}, 0},
		"cancelled":                                {"DTSTART:20261025T090000Z\nSTATUS:CANCELLED", "2026-10-25", 1, nil, 0},
		"one moved to another day": {"DTSTART:20261020T090000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nDTSTAMP:20260101T000000Z\nRECURRENCE-ID:20261025T090000Z\nDTSTART:20261101T150000Z", "2026-10-25", 2,
			[]string{"2026-10-26T09:00"}, 0},
		"one moved to this day": {"DTSTART:20261020T090000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\nBEGIN:VEVENT\nUID:1\nDTSTAMP:20260101T000000Z\nRECURRENCE-ID:20261023T090000Z\nDTSTART:20261025T150000Z", "2026-10-25", 1,
			[]string{"2026-10-25T09:00", "2026-10-25T15:00"}, 0},
		// Hostile ones.
		"each second":             {"DTSTART:20200101T090000Z\nRRULE:FREQ=SECONDLY", "2026-10-25", 1, nil, 1},
		"by all seconds":          {"DTSTART:20200101T090000Z\nRRULE:FREQ=YEARLY;BYSECOND=1,2,3", "2026-10-25", 1, nil, 1},
		"daily since Gutenberg":   {"DTSTART:16000101T090000Z\nRRULE:FREQ=DAILY", "2026-10-25", 1, nil, 1},
		"never":                   {"DTSTART:20200101T090000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31", "2026-10-25", 1, nil, 0},
		"an end before its start": {"DTSTART:20261025T090000Z\nDTEND:20261025T080000Z", "2026-10-25", 1, nil, 1},
		"an end that is a day":    {"DTSTART:20261025T090000Z\nDTEND;VALUE=DATE:20261026", "2026-10-25", 1, nil, 1},
		"no start":                {"SUMMARY:x", "2026-10-25", 1, nil, 1},
		"an invalid start":        {"DTSTART:soon", "2026-10-25", 1, nil, 1},
		"a broken calendar":       {"DTSTART", "2026-10-25", 1, nil, 1},
	} {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation(time.DateOnly, test.from, berlin)
		if err != nil {
			t.Fatal(err)
		}
		zones, event := "", test.event
		if after, found := strings.CutPrefix(event, windows); found {
			zones, event = windows, after
		}
		text := "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n" + zones + "BEGIN:VEVENT\nUID:1\nDTSTAMP:20260101T000000Z\n" + event + "\nEND:VEVENT\nEND:VCALENDAR\n"

		all, unread := invitation.Occurrences(text, from, from.AddDate(0, 0, test.days), berlin)

		var got []string
		for _, o := range all {
			got = append(got, o.Start.UTC().Format("2006-01-02T15:04"))
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) || unread != test.unread {
			t.Errorf("%s: %q, %d unread, want %q, %d", name, got, unread, test.want, test.unread)
		}
	}
}
