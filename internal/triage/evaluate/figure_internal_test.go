package evaluate

import (
	"math"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ p, n, low, high float64 }{
		{1, 56, .936, 1}, {.5, 10, .237, .763}, {0, 20, 0, .161},
	} {
		low, high := wilson(c.p, c.n)
		if math.Abs(low-c.low) > 1e-3 || math.Abs(high-c.high) > 1e-3 {
			t.Errorf("wilson(%v, %v) = %.3f, %.3f, want %v, %v", c.p, c.n, low, high, c.low, c.high)
		}
	}
}

func TestWithinOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b classify.Priority
		want bool
	}{
		{classify.Urgent, classify.NeedsResponse, true}, {classify.Urgent, classify.ForInfo, false},
		{classify.Personal, classify.Personal, true}, {classify.Personal, classify.Promotional, false},
		{classify.ForInfo, classify.Promotional, true},
	} {
		if got := withinOne(c.a, c.b); got != c.want {
			t.Errorf("withinOne(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestRepeatsDoNotNarrowTheInterval(t *testing.T) {
	t.Parallel()

	once, thrice := share{8, 10}.figure("x", 1), share{24, 30}.figure("x", 3)

	if once != thrice {
		t.Errorf("%+v and %+v, want the same", once, thrice)
	}
}
