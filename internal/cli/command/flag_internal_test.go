package command

import (
	"testing"
	"time"
)

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
		if got, err := parsePast(text, now); err != nil || !got.Equal(want) {
			t.Errorf("parsePast(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "12:00", "2026-13-01"} {
		if got, err := parsePast(text, now); err == nil {
			t.Errorf("parsePast(%q) = %v, want an error", text, got)
		}
	}
}
