package deadletters

import (
	"testing"
	"time"
)

func TestRequestsOfAPacedChangeStayWithinTheLead(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{0: requestSize, 0.01: 1, 1: 1, 2: 3, 50: 75, 10000: requestSize} {
		ch := bulkChange{rate: rate}
		if got := ch.batch(); got != want {
			t.Errorf("at %g a second a request has %d, want %d", rate, got, want)
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
		{500, 10 * time.Second, 0, "replay: 500 of 10000, 50/s, about 3m10s left"},
		{75, 0, 50, "replay: 75 of 10000, 50/s, about 3m19s left"},
		{10000, time.Minute, 0, "replay: 10000 of 10000, 167/s, about 0s left"},
	} {
		if got := progress("replay", test.n, 10000, test.took, test.rate); got != test.want {
			t.Errorf("progress = %q, want %q", got, test.want)
		}
	}
}
