package rendered_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// TestEveryFolderIsUsed shows that the list of combinations is complete: a
// folder in none of them would not be checked.
func TestEveryFolderIsUsed(t *testing.T) {
	t.Parallel()
	source := renderedtest.Source(t)

	if got := unused(t, source); len(got) > 0 {
		t.Errorf("no combination of deploy/%s uses %v", rendered.Readme, got)
	}

	with := source.With("k8s/components/forgotten/kustomization.yaml", "kind: Component")
	if got := unused(t, with); !slices.Contains(got, "components/forgotten") {
		t.Errorf("unused = %v with a folder that no combination names", got)
	}
}

func unused(t *testing.T, source rendered.Source) []string {
	t.Helper()
	combinations, err := source.Combinations()
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, c := range combinations {
		parts, err := source.Parts(c)
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, parts...)
	}
	return slices.DeleteFunc(source.Folders(), func(folder string) bool {
		return slices.Contains(used, folder[strings.LastIndex(folder, "/")+1:])
	})
}

func TestObjectsAreReadStrictly(t *testing.T) {
	t.Parallel()
	sets := renderedtest.Sets(t)

	for name, set := range sets {
		if got := unreadable(set); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStrictReadingCanFail shows that a misspelt field of each kind is found.
func TestStrictReadingCanFail(t *testing.T) {
	t.Parallel()
	source := renderedtest.Source(t)

	for _, c := range []renderedtest.Control{
		{Target: "Deployment/countersign-api", Patch: `[{"op": "add", "path": "/spec/template/spec/containers/0/securityContext/readOnlyRootFileSystem", "value": true}]`, Want: "readOnlyRootFileSystem"},
		{Target: "CronJob/countersign-doctor", Patch: `[{"op": "add", "path": "/spec/timezone", "value": "Etc/UTC"}]`, Want: "timezone"},
		{Target: "PodDisruptionBudget/countersign-worker", Patch: `[{"op": "add", "path": "/spec/maxUnavailble", "value": 1}]`, Want: "maxUnavailble"},
		{Target: "NetworkPolicy/countersign-default-deny", Patch: `[{"op": "add", "path": "/spec/podselector", "value": {}}]`, Want: "podselector"},
		{Target: "Service/countersign-api", Patch: `[{"op": "replace", "path": "/spec/ports/0/port", "value": "http"}]`, Want: "cannot unmarshal string"},
	} {
		before, after := c.Sets(t, source)
		c.Found(t, unreadable(before), unreadable(after))
	}
}

func unreadable(set rendered.Set) []string {
	var all []string
	_, wrong := set.Typed()
	for _, err := range wrong {
		all = append(all, err.Error())
	}
	return all
}
