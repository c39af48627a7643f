package signal

import (
	"testing"

	"pgregory.net/rapid"
)

// symbolsOf draws symbols of some axes, with any part of their weights.
func symbolsOf(t *rapid.T, label string, axes ...Axis) []Symbol {
	var rules []Rule
	for _, r := range Rules() {
		for _, a := range axes {
			if r.Axis == a {
				rules = append(rules, r)
			}
		}
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Symbol {
		r := rapid.SampledFrom(rules).Draw(t, "rule")
		part := rapid.SampledFrom([]float64{1, 1.0 / 3}).Draw(t, "part")
		return Symbol{Name: r.Name, Axis: r.Axis, Weight: r.Weight * part, Identity: r.Identity && part == 1}
	}), 0, 12).Draw(t, label)
}

// TestSymbolsOnlyLower adds symbols of risk and injection to others, and checks
// that everything forbidden before is still forbidden.
func TestSymbolsOnlyLower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := symbolsOf(t, "before", Risk, Inject, Bulk, Need, Kind)
		more := symbolsOf(t, "more", Risk, Inject)

		less := resultOf(before).Restriction()
		all := resultOf(append(before, more...)).Restriction()

		for a := range Ability(len(abilities())) {
			if all.Allows(a) && !less.Allows(a) {
				t.Fatalf("%s is allowed again: %v and then %v", abilities()[a], before, more)
			}
		}
	})
}

func TestJoinOnlyLowers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.Custom(func(t *rapid.T) Restriction {
			return Forbid(rapid.SliceOf(rapid.Map(rapid.IntRange(0, len(abilities())-1), func(i int) Ability { return Ability(i) })).Draw(t, "abilities")...)
		})
		a, b := some.Draw(t, "a"), some.Draw(t, "b")

		joined := a.Join(b)

		for one := range Ability(len(abilities())) {
			if joined.Allows(one) != (a.Allows(one) && b.Allows(one)) {
				t.Fatalf("join of %q and %q is %q", a, b, joined)
			}
		}
	})
}

func TestEverySymbolHasARule(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] {
			t.Errorf("%s stands twice", r.Name)
		}
		seen[r.Name] = true
		if (r.Axis == Kind) != (r.Weight == 0) && r.Name != VIP && r.Name != KnownCorrespondent {
			t.Errorf("%s: axis %s with weight %v", r.Name, r.Axis, r.Weight)
		}
		if r.Meaning == "" {
			t.Errorf("%s has no meaning", r.Name)
		}
	}
}
