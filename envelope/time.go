package envelope

import (
	"bytes"
	"time"
)

// kept returns a time as stored: in UTC and truncated to the microsecond, so
// that it survives a round trip through a database.
func kept(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// parseTime parses an RFC 3339 time in capital letters. The years are limited
// to those that arithmetic and storage support; Go's zero time means no time.
func parseTime(text []byte) (t time.Time, ok bool) {
	if !timeShaped(text) || string(text[:4]) < "1970" || string(text[:4]) > "2999" {
		return t, false
	}
	if err := t.UnmarshalText(text); err != nil {
		return t, false
	}
	return kept(t), true
}

// timeShaped reports whether a text has the form of an RFC 3339 time. Go's own
// parser also accepts one digit for the hour, a comma before the fraction and a
// zone of more than a day; it checks whether the day exists.
func timeShaped(text []byte) bool {
	const clock, maxFraction = "0000-00-00T00:00:00", 9
	if len(text) <= len(clock) || !shaped(text[:len(clock)], clock) {
		return false
	}
	zone := text[len(clock):]
	if zone[0] == '.' {
		rest := bytes.TrimLeft(zone[1:], "0123456789")
		if n := len(zone) - 1 - len(rest); n == 0 || n > maxFraction {
			return false
		}
		zone = rest
	}
	if string(zone) == "Z" {
		return true
	}
	return (shaped(zone, "+00:00") || shaped(zone, "-00:00")) &&
		string(zone[1:3]) < "24" && string(zone[4:]) < "60"
}

// shaped reports whether a text has a digit for every 0 of the shape, and the same
// other characters.
func shaped(text []byte, shape string) bool {
	if len(text) != len(shape) {
		return false
	}
	for i, c := range text {
		digit := shape[i] == '0' && c >= '0' && c <= '9'
		if !digit && (shape[i] == '0' || c != shape[i]) {
			return false
		}
	}
	return true
}
