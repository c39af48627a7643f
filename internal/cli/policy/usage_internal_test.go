package policy

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
)

func TestCutCountsAreLowerBounds(t *testing.T) {
	t.Parallel()
	for complete, want := range map[bool]string{true: "other rules and grants have none", false: "lower bound"} {
		if got := examined(wire.PolicyUsage{Examined: 7, Complete: complete}); !strings.Contains(got, want) || !strings.Contains(got, "7 ") {
			t.Errorf("examined(complete: %t) = %q, want %q", complete, got, want)
		}
	}
}
