// Package quiethours owns the arithmetic of quiet hours: weekly windows on the
// wall clock of a time zone, their ends, and the spread of delayed envelopes
// over the time after. It uses no clock and no table.
package quiethours

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// The limits of quiet hours.
const (
	// MaxWindows is the maximum number of windows.
	MaxWindows = 50
	// DefaultSpread is the default period over which delayed envelopes are sent
	// after a window.
	DefaultSpread = 5 * time.Minute
	// maxSpread is the maximum of that period.
	maxSpread = 6 * time.Hour
)

const (
	dayMinutes  = 24 * 60
	weekMinutes = 7 * dayMinutes
	daySeconds  = dayMinutes * 60
	everyDay    = 1<<7 - 1
)

// Window is a weekly period in which nothing is sent.
type Window wire.Window

// Hours are quiet hours in the form in which they are sent and stored.
type Hours struct {
	// Timezone is an IANA name such as Europe/Berlin.
	Timezone string `json:"timezone"`
	// Windows may overlap.
	Windows []Window `json:"windows"`
	// Spread is the period over which delayed envelopes are sent after a window,
	// 0 to 21600 seconds. Nil means five minutes.
	Spread *envelope.Duration `json:"spread,omitempty"`
}

// Schedule is compiled quiet hours. It is immutable and safe for concurrent use.
type Schedule struct {
	zone    *time.Location
	windows []span
	spread  time.Duration
}

// span is a window in minutes from the midnight of the day on which it begins.
type span struct {
	days        uint8 // bit 0 is Monday
	from, until int
}

// Compile checks and compiles quiet hours. The error is an
// *envelope.InvalidError with every invalid field.
func (q Hours) Compile() (*Schedule, error) {
	var p check.Problems
	s := &Schedule{spread: DefaultSpread, zone: check.Zone(q.Timezone)}
	if s.zone == nil {
		p.Zone("/timezone", q.Timezone)
	}
	if n := q.Spread; n != nil {
		s.spread = time.Duration(*n)
		if s.spread < 0 || s.spread > maxSpread {
			p.Add("/spread", "range", "must be from 0s to 6h; leave it out for 5m")
		}
	}
	switch n := len(q.Windows); {
	case n == 0:
		p.Add("/windows", "min_items", "must have at least one window; to end quiet hours, delete them")
	case n > MaxWindows:
		p.Add("/windows", envelope.RuleMaxItems, "must have at most 50 windows")
	default:
		for i, w := range q.Windows {
			s.windows = append(s.windows, w.compile(fmt.Sprintf("/windows/%d", i), &p))
		}
	}
	if len(p) == 0 && coverWeek(s.windows) {
		p.Add("/windows", "always", "must leave some time of the week to send in; to stop sending altogether, use pause")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (w Window) compile(at string, p *check.Problems) span {
	s := span{days: everyDay}
	if len(w.Days) > 0 {
		s.days = 0
	}
	for i, text := range w.Days {
		here := fmt.Sprintf("%s/days/%d", at, i)
		day := slices.Index([]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, text)
		switch {
		case i > 7:
		case day < 0:
			p.Add(here, envelope.RuleEnum, "must be one of mon, tue, wed, thu, fri, sat, sun")
		case s.days&(1<<day) != 0:
			p.Add(here, check.RuleDuplicate, "must not name a day that the window already has")
		default:
			s.days |= 1 << day
		}
	}
	var fromOK, untilOK bool
	if s.from, fromOK = clock(w.From); !fromOK {
		p.Add(at+"/from", envelope.RuleFormat, "must be a time from 00:00 to 23:59, written HH:MM")
	}
	text, next := strings.CutSuffix(w.Until, "+1")
	s.until, untilOK = clock(text)
	switch {
	case w.Until == "24:00":
		s.until, untilOK = dayMinutes, true
	case next:
		s.until += dayMinutes
	}
	switch {
	case !untilOK:
		p.Add(at+"/until", envelope.RuleFormat, "must be a time from 00:01 to 24:00, written HH:MM, or HH:MM+1 for a time of the next day")
	case fromOK && s.until <= s.from:
		p.Add(at+"/until", check.RuleOrder, "must be later than from; for a window over midnight write the next day's time with +1, such as 07:00+1")
	case fromOK && s.until-s.from > dayMinutes:
		p.Add(at+"/until", check.RuleOrder, "must be at most 24 hours later than from; for a longer time write one window for each day")
	}
	return s
}

// clock parses HH:MM as minutes.
func clock(text string) (minutes int, ok bool) {
	if len(text) != len("00:00") {
		return 0, false
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil
}

// coverWeek reports whether windows cover the whole week.
func coverWeek(windows []span) bool {
	var quiet [weekMinutes]bool
	left := weekMinutes
	for _, w := range windows {
		for day := range 7 {
			if w.days&(1<<day) == 0 {
				continue
			}
			for m := w.from; m < w.until; m++ {
				if minute := &quiet[(day*dayMinutes+m)%weekMinutes]; !*minute {
					*minute = true
					left--
				}
			}
		}
	}
	return left == 0
}

// Spread returns the period over which delayed envelopes are sent after a
// window.
func (s *Schedule) Spread() time.Duration { return s.spread }

// QuietUntil reports whether now is in a window, and returns the first instant
// after it at which sending may begin: windows that overlap or adjoin count as
// one. It does not allocate.
//
// A window extends from the first instant at which the wall clock shows From to
// the last at which it shows Until, so an hour that occurs twice is quiet both
// times. A wall time that the clock skips is the instant of the change. A window
// wholly within the skipped time is empty.
func (s *Schedule) QuietUntil(now time.Time) (end time.Time, quiet bool) {
	at := now.Unix()
	for {
		next := s.windowEnd(at)
		if next <= at {
			break
		}
		at, quiet = next, true
	}
	if !quiet {
		return time.Time{}, false
	}
	return time.Unix(at, 0).UTC(), true
}

// windowEnd returns the latest end of the windows around an instant, or the
// instant itself if there are none. All instants are Unix seconds.
func (s *Schedule) windowEnd(at int64) int64 {
	var buffer [8]period
	periods, offset := periodsAround(s.zone, at, buffer[:0])
	today := (at + offset) / daySeconds
	if (at+offset)%daySeconds < 0 {
		today--
	}
	end := at
	// A window lasts at most a day from its start, and a clock change is at most
	// a day.
	for day := today - 2; day <= today+1; day++ {
		weekday := (day%7 + 7 + 3) % 7 // 1970-01-01 was a Thursday
		for _, w := range s.windows {
			if w.days&(1<<weekday) == 0 {
				continue
			}
			midnight := day * daySeconds
			if last := lastShown(periods, midnight+int64(w.until)*60); last > end && firstShown(periods, midnight+int64(w.from)*60) <= at {
				end = last
			}
		}
	}
	return end
}

// period is a time from start to before end with a constant offset from UTC, in
// seconds.
type period struct{ start, end, offset int64 }

// periodsAround appends the periods of the days around an instant, in order,
// and returns the offset at the instant.
func periodsAround(zone *time.Location, at int64, list []period) ([]period, int64) {
	const reach = 4 * daySeconds
	first := periodAt(zone, at)
	offset := first.offset
	for first.start > at-reach {
		first = periodAt(zone, first.start-1)
	}
	list = append(list, first)
	for last := first; last.end < at+reach; {
		last = periodAt(zone, last.end)
		list = append(list, last)
	}
	return list, offset
}

func periodAt(zone *time.Location, at int64) period {
	t := time.Unix(at, 0).In(zone)
	_, offset := t.Zone()
	p := period{start: -1 << 63, end: 1<<63 - 1, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	return p
}

// firstShown returns the first instant at which the clock shows a wall time,
// given in seconds since 1970-01-01 00:00 on that clock, or skips it.
func firstShown(periods []period, wall int64) int64 {
	for _, p := range periods[:len(periods)-1] {
		if at := wall - p.offset; at < p.end {
			return max(at, p.start)
		}
	}
	p := periods[len(periods)-1]
	return max(wall-p.offset, p.start)
}

// lastShown returns the last instant at which the clock shows a wall time, or
// skips it.
func lastShown(periods []period, wall int64) int64 {
	for _, p := range slices.Backward(periods[1:]) {
		if at := wall - p.offset; at >= p.start {
			return min(at, p.end)
		}
	}
	return min(wall-periods[0].offset, periods[0].end)
}

// Intervals returns the quiet time from one instant to another, in order, on the
// clock of the zone. Windows that overlap or adjoin are one interval. The first
// begins at from if from is quiet, and the last may end after until.
func (s *Schedule) Intervals(from, until time.Time) []wire.QuietInterval {
	starts := []int64{from.Unix()}
	for day := from.Unix()/daySeconds - 2; day <= until.Unix()/daySeconds+2; day++ {
		periods, _ := periodsAround(s.zone, day*daySeconds, nil)
		weekday := (day%7 + 7 + 3) % 7
		for _, w := range s.windows {
			if w.days&(1<<weekday) != 0 {
				starts = append(starts, firstShown(periods, day*daySeconds+int64(w.from)*60))
			}
		}
	}
	slices.Sort(starts)
	list := []wire.QuietInterval{}
	at := from
	for _, start := range starts {
		begin := time.Unix(start, 0)
		if start < at.Unix() || !begin.Before(until) {
			continue
		}
		if end, quiet := s.QuietUntil(begin); quiet {
			list = append(list, wire.QuietInterval{From: begin.In(s.zone), Until: end.In(s.zone)})
			at = end
		}
	}
	return list
}

// ClockChanges returns the changes of the zone's offset after one instant and
// before another, in order.
func (s *Schedule) ClockChanges(from, until time.Time) []wire.ClockChange {
	list := []wire.ClockChange{}
	for p := periodAt(s.zone, from.Unix()); p.end < until.Unix(); {
		next := periodAt(s.zone, p.end)
		if next.offset != p.offset {
			list = append(list, wire.ClockChange{At: time.Unix(next.start, 0).In(s.zone), BySeconds: next.offset - p.offset})
		}
		p = next
	}
	return list
}

// Active is quiet hours that currently cover an action.
type Active struct {
	// Until is their end. Active quiet hours whose end has passed are ignored.
	Until time.Time
	// Level is their scope: tenant, employee, bucket or recipient.
	Level string
	// Spread is the delay after the end until this envelope is sent, from the
	// function Spread.
	Spread time.Duration
}

// Spread returns the delay after the end of a window until an envelope is sent:
// from zero to less than over, constant for an envelope and evenly distributed
// over all of them. It is zero if over is.
func Spread(id envelope.ActionID, over time.Duration) time.Duration {
	if over <= 0 {
		return 0
	}
	sum := sha256.Sum256(id[:])
	share, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(over))
	return time.Duration(share)
}
