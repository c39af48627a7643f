package cluster_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/countersign-dev/countersign/deploy/test/kubetest"
	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// TestAdmission submits every object of every combination to an API server as a
// dry run.
func TestAdmission(t *testing.T) {
	t.Parallel()
	plane, sets := newAPIServer(t), renderedtest.Sets(t)

	for name, set := range sets {
		t.Run("strict/"+name, func(t *testing.T) {
			t.Parallel()

			for _, problem := range refusals(t.Context(), plane, set) {
				t.Error(problem)
			}
		})
		t.Run("restricted/"+name, func(t *testing.T) {
			t.Parallel()

			for _, problem := range unadmitted(t.Context(), t, plane, set) {
				t.Error(problem)
			}
		})
	}
}

// newAPIServer starts an API server with every kind of object that the
// combinations have, and a namespace that admits restricted pods only.
func newAPIServer(t *testing.T) *kubetest.Plane {
	t.Helper()
	plane := kubetest.Start(t)
	var all []*unstructured.Unstructured
	for _, set := range renderedtest.Sets(t) {
		all = append(all, set.Objects...)
	}
	if err := plane.AddDefinitions(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := plane.AddNamespace(t.Context(), rendered.Namespace, map[string]string{"pod-security.kubernetes.io/warn": "restricted"}); err != nil {
		t.Fatal(err)
	}
	if err := plane.AddNamespace(t.Context(), "restricted", map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
	}); err != nil {
		t.Fatal(err)
	}
	return plane
}

// TestAdmissionCanFail submits objects that the API server must refuse.
func TestAdmissionCanFail(t *testing.T) {
	t.Parallel()
	plane, source := newAPIServer(t), renderedtest.Source(t)

	for _, c := range []renderedtest.Control{
		{Target: "Deployment/countersign-api", Patch: `[{"op": "add", "path": "/spec/template/spec/containers/0/securityContext/readOnlyRootFileSystem", "value": true}]`, Want: "field not declared in schema"},
		{With: "keda", Target: "ScaledObject/countersign-worker", Patch: `[{"op": "add", "path": "/spec/coolDownPeriod", "value": 1}]`, Want: "coolDownPeriod"},
		{With: "monitors", Target: "PodMonitor/countersign", Patch: `[{"op": "add", "path": "/spec/podMetricEndpoints", "value": []}]`, Want: "podMetricEndpoints"},
		{Target: "Deployment/countersign-worker", Patch: `[{"op": "add", "path": "/spec/template/spec/containers/0/lifecycle", "value": {"preStop": {"sleep": {"seconds": 900}}}}]`, Want: "terminationGracePeriodSeconds"},
		{Target: "PodDisruptionBudget/countersign-api", Patch: `[{"op": "add", "path": "/spec/minAvailable", "value": 1}]`, Want: "cannot be both set"},
		{Target: "CronJob/countersign-doctor", Patch: `[{"op": "replace", "path": "/spec/timeZone", "value": "Europe/Nowhere"}]`, Want: "unknown time zone"},
		{Target: "Deployment/countersign-api", Patch: `[{"op": "replace", "path": "/spec/selector/matchLabels/app.kubernetes.io~1component", "value": "apis"}]`, Want: "does not match template"},
		// A warning alone counts as a refusal.
		{Target: "Deployment/countersign-api", Patch: `[{"op": "remove", "path": "/spec/template/spec/securityContext"}]`, Want: "would violate PodSecurity"},
	} {
		before, after := c.Sets(t, source)
		c.Found(t, refusals(t.Context(), plane, before), refusals(t.Context(), plane, after))
	}
	for _, c := range []renderedtest.Control{
		{Target: "Deployment/countersign-api", Patch: `[{"op": "remove", "path": "/spec/template/spec/securityContext"}]`, Want: "runAsNonRoot"},
		{Target: "CronJob/countersign-doctor", Patch: `[{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/containers/0/securityContext/capabilities"}]`, Want: "unrestricted capabilities"},
		{Target: "Job/countersign-migrate-v0-1-0", Patch: `[{"op": "replace", "path": "/spec/template/spec/automountServiceAccountToken", "value": true}]`, Want: "adds a token"},
	} {
		before, after := c.Sets(t, source)
		c.Found(t, unadmitted(t.Context(), t, plane, before), unadmitted(t.Context(), t, plane, after))
	}
}

// refusals applies each object, without storing it. Cilium's own kind is left
// out: its definition is not at hand.
func refusals(ctx context.Context, plane *kubetest.Plane, set rendered.Set) []string {
	var problems []string
	for _, object := range set.Objects {
		if object.GroupVersionKind().Group == "cilium.io" {
			continue
		}
		if err := plane.Apply(ctx, object, true); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// unadmitted submits each template of pods as a pod: admission checks pods
// only, and accepts any Deployment, even if it could not create one.
func unadmitted(ctx context.Context, t *testing.T, plane *kubetest.Plane, set rendered.Set) []string {
	t.Helper()
	typed, wrong := set.Typed()
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	var problems []string
	for _, w := range typed.Workloads() {
		w.Template.Spec.ServiceAccountName = "" // those of the set are in another namespace
		pod, err := plane.Admit(ctx, "restricted", w.Template)
		if err != nil {
			problems = append(problems, w.String()+": "+err.Error())
			continue
		}
		for _, v := range pod.Spec.Volumes {
			if strings.HasPrefix(v.Name, "kube-api-access") {
				problems = append(problems, w.String()+": admission adds a token of Kubernetes")
			}
		}
	}
	return problems
}
