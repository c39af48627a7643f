package brief

import "time"

// Due is a time at which a brief is due.
type Due struct {
	Kind Kind
	At   time.Time
}

// LateAfter is how long after its due time a brief is late.
const LateAfter = 10 * time.Minute

// Last returns the latest due time after one time and up to another. Earlier ones are
// passed over: after an outage one brief covers them all. It reports false if none is
// due.
func (s Settings) Last(after, now time.Time) (last Due, due bool) {
	for _, d := range s.around(now) {
		if d.At.After(after) && !d.At.After(now) && d.At.After(last.At) {
			last, due = d, true
		}
	}
	return last, due
}

// Next returns the first due time after a time.
func (s Settings) Next(after time.Time) (next Due, due bool) {
	for _, d := range s.around(after) {
		if d.At.After(after) && (!due || d.At.Before(next.At)) {
			next, due = d, true
		}
	}
	return next, due
}

// around returns the due times of the days around a time.
func (s Settings) around(now time.Time) (all []Due) {
	zone := Location(s.Zone)
	y, m, d := now.In(zone).Date()
	for day := d - 2; day <= d+2; day++ {
		for _, times := range []struct {
			kind Kind
			text string
		}{{Morning, s.Morning}, {Evening, s.Evening}} {
			of, err := time.Parse(clock, times.text)
			if err != nil {
				continue
			}
			if at, ok := instant(y, m, day, of.Hour(), of.Minute(), zone); ok {
				all = append(all, Due{times.kind, at})
			}
		}
	}
	return all
}

// instant returns the time of a day at which the clocks of a zone show an hour and a
// minute: the first one if they do so twice, and the end of the gap if they leave it
// out. It reports false for a day that the zone leaves out.
func instant(y int, m time.Month, d, hour, minute int, zone *time.Location) (time.Time, bool) {
	day := time.Date(y, m, d, 12, 0, 0, 0, time.UTC).Day()
	at := time.Date(y, m, d, hour, minute, 0, 0, zone)
	start, end := at.ZoneBounds()
	if h, min, _ := at.Clock(); h != hour || min != minute || at.Day() != day {
		// at is on one side of the gap, whose end is the nearer change of the zone.
		switch {
		case start.IsZero() || !end.IsZero() && end.Sub(at) < at.Sub(start):
			at = end
		default:
			at = start
		}
		return at.In(zone), at.In(zone).Day() == day
	}
	if !start.IsZero() {
		_, now := at.Zone()
		_, before := start.Add(-time.Second).Zone()
		if first := at.Add(-time.Duration(before-now) * time.Second); before > now && first.Before(start) {
			at = first.In(zone)
		}
	}
	return at, true
}
