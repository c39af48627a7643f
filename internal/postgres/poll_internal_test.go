package postgres

import (
	"testing"
	"time"
)

func TestPollsOfAProcessCoincide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ age, longest, want time.Duration }{
		"a short pause":              {1400 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
		"between two beats":          {1400 * time.Millisecond, time.Second, 600 * time.Millisecond},
		"at a beat":                  {2 * time.Second, time.Second, time.Second},
		"just after a beat":          {2*time.Second + 1, time.Second, time.Second - 1},
		"just before a beat":         {2*time.Second - 1, time.Second, 1},
		"several beats":              {1400 * time.Millisecond, 5 * time.Second, 4600 * time.Millisecond},
		"more than a number of them": {1400 * time.Millisecond, 1700 * time.Millisecond, 1600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := pollPause(test.age, test.longest); got != test.want {
				t.Errorf("pollPause(%s, %s) = %s, want %s", test.age, test.longest, got, test.want)
			}
		})
	}
}
