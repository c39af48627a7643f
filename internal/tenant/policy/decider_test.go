package policy_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// TestDeciderIsConsistent requests more distinct decisions than a Decider
// caches, from several goroutines.
func TestDeciderIsConsistent(t *testing.T) {
	t.Parallel()

	decider := policy.NewDecider()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for version := range 5000 {
				in := policy.Input{
					Key: send(), Risk: policy.RiskRead,
					Automation: policy.Compile([]policy.Rule{{Key: "*", Mode: "allow", Version: strconv.Itoa(version)}}),
				}
				if diff := cmp.Diff(policy.Decide(in).Trace[0], decider.Decide(in).Trace[0]); diff != "" {
					t.Errorf("a Decider differs (-Decide +Decider):\n%s", diff)
					return
				}
			}
		})
	}
	wg.Wait()
}
