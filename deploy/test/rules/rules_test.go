package rules_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
	"github.com/countersign-dev/countersign/deploy/test/rules"
)

func TestRules(t *testing.T) {
	t.Parallel()
	known, sets := facts(t), renderedtest.Sets(t)

	for _, name := range slices.Sorted(maps.Keys(rules.Rules())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for combination, set := range sets {
				for _, broken := range rules.Rules()[name](known, renderedtest.Typed(t, set)) {
					t.Errorf("%s: %s", combination, broken)
				}
			}
		})
	}
}

// TestRulesCanFail makes each rule's manifests wrong in memory.
func TestRulesCanFail(t *testing.T) {
	t.Parallel()
	known, source := facts(t), renderedtest.Source(t)

	for name, rule := range rules.Rules() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if len(controls()[name]) == 0 {
				t.Fatal("the rule has no control, so that nothing shows that it can fail")
			}
			for _, c := range controls()[name] {
				before, after := c.Sets(t, source)
				c.Found(t, rule(known, renderedtest.Typed(t, before)), rule(known, renderedtest.Typed(t, after)))
			}
		})
	}
}
