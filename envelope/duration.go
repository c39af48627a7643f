package envelope

import (
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Duration is a configured length of time, written with units: 90s, 1h30m, 1d,
// 1d12h. A day has 24 hours.
type Duration time.Duration

// day is the unit that the standard library does not have.
const day = 24 * time.Hour

// maxDays bounds a duration, far above every limit.
const maxDays = 10_000

// ParseDuration parses the output of String, and the syntax of
// time.ParseDuration. The error is fault.Invalid for any other text, a negative
// duration and one of more than 10000 days. The result is exact to the
// microsecond.
func ParseDuration(text string) (Duration, error) {
	refused := fault.New(fault.Invalid, "a duration must be a number with a unit (ms, s, m, h or d), such as 500ms, 90s, 1h30m or 1d")
	var days time.Duration
	rest := text
	if whole, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(whole, 10, 32)
		if err != nil || n > maxDays {
			return 0, refused
		}
		days, rest = time.Duration(n)*day, after
	}
	if rest == "" && text != "" {
		return Duration(days), nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > maxDays*day-days || strings.ContainsAny(rest, "+-") {
		return 0, refused
	}
	return Duration(days + d.Round(time.Microsecond)), nil
}

// String writes a duration with the largest units that fit: 1d12h, 1h30m, 90ms.
func (d Duration) String() string {
	rest := time.Duration(d) % day
	var text string
	if days := time.Duration(d) / day; days > 0 {
		text = strconv.FormatInt(int64(days), 10) + "d"
		if rest == 0 {
			return text
		}
	}
	clock := rest.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(clock, zero); ok {
			clock = short + zero[:1]
		}
	}
	return text + clock
}

// Seconds returns the duration in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// MarshalText returns the same as String and never an error.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the syntax of ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}
