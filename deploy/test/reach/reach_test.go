package reach_test

import (
	"testing"

	"github.com/countersign-dev/countersign/deploy/test/reach"
	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// TestPoliciesAreTheTable compares every combination's policies with the
// document's table.
func TestPoliciesAreTheTable(t *testing.T) {
	t.Parallel()
	source := renderedtest.Source(t)

	for name, set := range renderedtest.Sets(t) {
		for _, difference := range differences(t, source, set) {
			t.Errorf("%s: %s", name, difference)
		}
	}
}

// TestPoliciesCanDiffer opens an extra edge, and closes one that is needed.
func TestPoliciesCanDiffer(t *testing.T) {
	t.Parallel()
	source := renderedtest.Source(t)

	for _, c := range []renderedtest.Control{
		// A misspelt label selects nothing, without an error.
		{Target: "NetworkPolicy/countersign-database", Patch: `[{"op": "replace", "path": "/spec/podSelector/matchExpressions/1/values", "value": ["apis"]}]`, Want: "the table has api → postgres:5432"},
		{Target: "NetworkPolicy/countersign-api-from-audit-verify", Patch: `[{"op": "replace", "path": "/spec/ingress/0/from/0/podSelector/matchLabels/app.kubernetes.io~1component", "value": "audit"}]`, Want: "the table has audit-verify → api:8080"},
		{Target: "NetworkPolicy/countersign-default-deny", Patch: `[{"op": "replace", "path": "/spec/podSelector", "value": {"matchLabels": {"app.kubernetes.io/name": "countersing"}}}]`, Want: "the policies allow other → worker:9090"},
		{Patch: `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "extra", "namespace": "countersign"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}}`, Want: "the policies allow audit-verify → internet:443"},
		{Target: "NetworkPolicy/countersign-worker-internet", Patch: `[{"op": "remove", "path": "/spec/egress/0/to/0/ipBlock/except"}]`, Want: "the policies allow worker → metadata:443"},
		{Target: "NetworkPolicy/countersign-worker-internet", Patch: `[{"op": "remove", "path": "/spec/egress/0/ports"}]`, Want: "the policies allow worker → internet:25"},
		{Target: "NetworkPolicy/countersign-dns", Patch: `[{"op": "replace", "path": "/spec/egress/0/ports/0/protocol", "value": "TCP"}]`, Want: "the table has api → dns:53/udp"},
		{Target: "NetworkPolicy/countersign-dns", Patch: `[{"op": "remove", "path": "/metadata/namespace"}]`, Want: "has no namespace"},
	} {
		before, after := c.Sets(t, source)
		c.Found(t, differences(t, source, before), differences(t, source, after))
	}
}

func differences(t *testing.T, source rendered.Source, set rendered.Set) []string {
	t.Helper()
	document, err := source.File(rendered.Readme)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := reach.Table(string(document))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := source.Parts(set.Combination)
	if err != nil {
		t.Fatal(err)
	}
	found, err := reach.Differences(rows, parts, renderedtest.Typed(t, set))
	if err != nil {
		return []string{err.Error()}
	}
	return found
}
