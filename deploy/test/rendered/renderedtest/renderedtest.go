// Package renderedtest gives tests the documented combinations, and makes
// faulty ones of them: every check has controls, each a change in memory that
// the check must find.
package renderedtest

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// Source returns the manifests. Tests run in the folder of their package, one
// below the module.
func Source(t testing.TB) rendered.Source {
	t.Helper()
	source, err := rendered.Open("../..")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// Sets returns every documented combination by its name.
func Sets(t testing.TB) map[string]rendered.Set {
	t.Helper()
	source := Source(t)
	combinations, err := source.Combinations()
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string]rendered.Set{}
	for _, c := range combinations {
		if sets[c.Name], err = source.Render(c); err != nil {
			t.Fatal(err)
		}
	}
	return sets
}

// Typed reads a set, which must have no unknown field.
func Typed(t testing.TB, set rendered.Set) rendered.Typed {
	t.Helper()
	typed, wrong := set.Typed()
	for _, err := range wrong {
		t.Error(err)
	}
	if len(wrong) > 0 {
		t.FailNow()
	}
	return typed
}

// A Control is a change that makes a manifest wrong, and the expected finding
// of a check.
type Control struct {
	// With is a component that is added to the base, if any.
	With string
	// Target is KIND/NAME, and Patch a JSON patch of it. Without a target, Patch
	// is an object that is added.
	Target, Patch string
	// Want is a part of the check's message.
	Want string
}

// Sets returns the objects before and after the change.
func (c Control) Sets(t testing.TB, source rendered.Source) (before, after rendered.Set) {
	t.Helper()
	combination := rendered.Combination{Name: "control", Folder: "base"}
	if c.With != "" {
		combination.Components = []string{"components/" + c.With}
	}
	before, err := source.Render(combination)
	if err != nil {
		t.Fatal(err)
	}
	if c.Target == "" {
		after, err = before.Added(c.Patch)
	} else {
		after, err = before.Patched(c.Target, c.Patch)
	}
	if err != nil {
		t.Fatal(err)
	}
	return before, after
}

// Found reports an error unless the findings after the change contain the
// wanted one, and those before do not.
func (c Control) Found(t testing.TB, before, after []string) {
	t.Helper()
	says := func(findings []string) bool { return strings.Contains(strings.Join(findings, "\n"), c.Want) }
	if !says(after) {
		t.Errorf("%s %s: found %q, want one that says %q", c.Target, c.Patch, after, c.Want)
	}
	if says(before) {
		t.Errorf("%s: %q is found without the change too, so that the control shows nothing", c.Target, c.Want)
	}
}
