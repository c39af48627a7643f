package cli

import (
	"testing"
	"time"
)

func TestLotsOfAPacedChangeStayWithinTheLead(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{0: lotSize, 0.01: 1, 1: 1, 2: 3, 50: 75, 10000: lotSize} {
		ch := letterChange{rate: rate}
		if got := ch.lot(); got != want {
			t.Errorf("at %g a second a lot is %d, want %d", rate, got, want)
		}
	}
}

func TestProgressTellsHowLongItTakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n    int
		took time.Duration
		rate float64
		want string
	}{
		{500, 10 * time.Second, 0, "replay: 500 of 10000, 50/s, about 3m10s to go"},
		{75, 0, 50, "replay: 75 of 10000, 50/s, about 3m19s to go"},
		{10000, time.Minute, 0, "replay: 10000 of 10000, 167/s, about 0s to go"},
	} {
		if got := progress("replay", test.n, 10000, test.took, test.rate); got != test.want {
			t.Errorf("progress = %q, want %q", got, test.want)
		}
	}
}

func TestTimesOfAFilter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"2026-02-03T04:05:06Z":      time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
		"2026-02-03T04:05:06+01:00": time.Date(2026, 2, 3, 3, 5, 6, 0, time.UTC),
		"2026-02-03":                time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
		"24h":                       now.Add(-24 * time.Hour),
	} {
		if got, err := timeFlag("since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("timeFlag(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "12:00", "2026-13-01"} {
		if got, err := timeFlag("since", text, now); err == nil {
			t.Errorf("timeFlag(%q) = %v, want an error", text, got)
		}
	}
}
