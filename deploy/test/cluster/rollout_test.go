package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/countersign-dev/countersign/deploy/test/kubetest"
	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// A cluster is a control plane with nodes in three zones and the base on it.
type cluster struct {
	*kubetest.Plane

	base rendered.Set
}

const (
	worker = "countersign-worker"
	// replicas is the number of workers in the tests, two for each zone.
	replicas = 6
)

// newCluster installs the base, as a first installation does, and waits until
// everything runs.
func newCluster(t *testing.T) cluster {
	t.Helper()
	plane := kubetest.Start(t)
	plane.StartControllers(t)
	for _, zone := range []string{"a", "b", "c"} {
		if err := plane.AddNode(t.Context(), kubetest.Node{Name: "node-" + zone, Zone: zone}); err != nil {
			t.Fatal(err)
		}
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rendered.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := plane.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	base, err := renderedtest.Source(t).Render(rendered.Combination{Name: "base", Folder: "base"})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster{plane, base}
	c.apply(t, base)
	c.available(t, "countersign-api", 1)
	if err := c.Scale(t.Context(), rendered.Namespace, worker, replicas); err != nil {
		t.Fatal(err)
	}
	c.available(t, worker, replicas)
	return c
}

func (c cluster) apply(t *testing.T, set rendered.Set) {
	t.Helper()
	for _, object := range set.Objects {
		if err := c.Apply(t.Context(), object, false); err != nil {
			t.Fatal(err)
		}
	}
}

// available waits until a Deployment's newest pods are available, and no
// others are left.
func (c cluster) available(t *testing.T, deployment string, want int32) {
	t.Helper()
	c.Wait(t, deployment, func(ctx context.Context) (bool, string) {
		d, err := c.AppsV1().Deployments(rendered.Namespace).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return rolledOut(d, want), fmt.Sprintf("%+v", d.Status)
	})
}

func rolledOut(d *appsv1.Deployment, want int32) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
}

// pods returns the pods of a component that are not ending.
func (c cluster) pods(ctx context.Context, component string) ([]corev1.Pod, error) {
	list, err := c.CoreV1().Pods(rendered.Namespace).List(ctx, metav1.ListOptions{LabelSelector: rendered.ComponentLabel + "=" + component})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// TestRollout walks through the life of one installation.
func TestRollout(t *testing.T) {
	t.Parallel()
	c := newCluster(t)

	t.Run("replicas stand in every zone", func(t *testing.T) { c.spreads(t) })
	t.Run("the migration runs once for each version", func(t *testing.T) { c.migrates(t) })
	t.Run("an apply leaves replicas to the autoscaler", func(t *testing.T) { c.keepsReplicas(t) })
	t.Run("a rolling update has never fewer than wanted", func(t *testing.T) { c.updates(t) })
	t.Run("a drain respects the budget and ends", func(t *testing.T) { c.drains(t) })
	t.Run("schedules start a Job, and not a second beside it", func(t *testing.T) { c.schedules(t) })
	t.Run("a budget can block a drain", func(t *testing.T) { c.blocks(t) })
	t.Run("a GPU goes to the model server alone", func(t *testing.T) { c.places(t) })
}

func (c cluster) spreads(t *testing.T) {
	zones := func() map[string]int {
		pods, err := c.pods(t.Context(), "worker")
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, p := range pods {
			count[p.Spec.NodeName]++
		}
		return count
	}

	if got := zones(); got["node-a"] != replicas/3 || got["node-b"] != replicas/3 || got["node-c"] != replicas/3 {
		t.Errorf("workers stand on %v, want %d on each", got, replicas/3)
	}
}

// migrates shows why the name of the Job has the version: its template cannot
// change.
func (c cluster) migrates(t *testing.T) {
	job, err := c.base.Find(c.migration(t))
	if err != nil {
		t.Fatal(err)
	}
	c.complete(t, job.GetName())

	same, err := c.base.Patched(c.migration(t), `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "countersign:v9.9.9"}]`)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := same.Find(c.migration(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), changed, false); err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("a Job of the same name with another image: %v, want that it is refused", err)
	}
	changed = changed.DeepCopy()
	changed.SetName("countersign-migrate-v9-9-9")
	if err := c.Apply(t.Context(), changed, false); err != nil {
		t.Fatal(err)
	}
	c.complete(t, changed.GetName())
}

// migration returns KIND/NAME of the Job.
func (c cluster) migration(t *testing.T) string {
	t.Helper()
	at := slices.IndexFunc(c.base.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" })
	if at < 0 {
		t.Fatal("the base has no Job")
	}
	return rendered.Name(c.base.Objects[at])
}

func (c cluster) complete(t *testing.T, job string) {
	t.Helper()
	c.Wait(t, job, func(ctx context.Context) (bool, string) {
		j, err := c.BatchV1().Jobs(rendered.Namespace).Get(ctx, job, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return j.Status.Succeeded == 1, fmt.Sprintf("%+v", j.Status)
	})
}

func (c cluster) keepsReplicas(t *testing.T) {
	if got := c.replicasAfter(t, c.base); got != replicas {
		t.Errorf("an apply after the autoscaler left %d replicas, want %d", got, replicas)
	}

	// With replicas in the manifest, applying it reverts the autoscaler's change.
	set, err := c.base.Patched("Deployment/"+worker, `[{"op": "add", "path": "/spec/replicas", "value": 2}]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.replicasAfter(t, set); got == replicas {
		t.Error("an apply of other replicas changed nothing, and a change is what the test should see")
	}
	c.apply(t, c.base)
	if err := c.Scale(t.Context(), rendered.Namespace, worker, replicas); err != nil {
		t.Fatal(err)
	}
	c.available(t, worker, replicas)
}

// replicasAfter applies the workers' Deployment of a set, and returns its
// number of replicas afterwards.
func (c cluster) replicasAfter(t *testing.T, set rendered.Set) int32 {
	t.Helper()
	object, err := set.Find("Deployment/" + worker)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), object, false); err != nil {
		t.Fatal(err)
	}
	d, err := c.AppsV1().Deployments(rendered.Namespace).Get(t.Context(), worker, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

func (c cluster) updates(t *testing.T) {
	if got := c.leastDuring(t, `[{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"roll": "1"}}]`); got < replicas {
		t.Errorf("a rolling update had %d available, want %d at least", got, replicas)
	}

	// A strategy that takes pods away first is noticed.
	taking := `{"op": "replace", "path": "/spec/strategy/rollingUpdate", "value": {"maxUnavailable": 3, "maxSurge": 0}}`
	second := `{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"roll": "2"}}`
	if got := c.leastDuring(t, `[`+second+`, `+taking+`]`); got >= replicas {
		t.Errorf("a rolling update that takes three away first had %d available, and fewer than %d is what the test should see", got, replicas)
	}
	// The template is unchanged, so the strategy is restored without another
	// update.
	back, err := c.base.Patched("Deployment/"+worker, `[`+second+`]`)
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, back)
	c.available(t, worker, replicas)
}

// leastDuring changes the workers' Deployment and returns the least number of
// available pods until all have the new template.
func (c cluster) leastDuring(t *testing.T, patch string) int32 {
	t.Helper()
	set, err := c.base.Patched("Deployment/"+worker, patch)
	if err != nil {
		t.Fatal(err)
	}
	object, err := set.Find("Deployment/" + worker)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := c.AppsV1().Deployments(rendered.Namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + worker, TimeoutSeconds: new(int64(120)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	before, err := c.AppsV1().Deployments(rendered.Namespace).Get(t.Context(), worker, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), object, false); err != nil {
		t.Fatal(err)
	}
	least, last := int32(replicas), before.Status
	for event := range seen.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || event.Type == watch.Error {
			t.Fatalf("watch: %v", event)
		}
		least, last = min(least, d.Status.AvailableReplicas), d.Status
		if d.Generation > before.Generation && rolledOut(d, replicas) {
			return least
		}
	}
	t.Fatalf("the update does not end: %+v", last)
	return 0
}

// drains empties a node as kubectl drain does.
func (c cluster) drains(t *testing.T) {
	node := "node-a"
	if err := c.Cordon(t.Context(), node, true); err != nil {
		t.Fatal(err)
	}
	refused, least := 0, int32(replicas)
	c.Wait(t, "drain of "+node, func(ctx context.Context) (bool, string) {
		pods, err := c.CoreV1().Pods(rendered.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return false, err.Error()
		}
		left := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodSucceeded {
				continue
			}
			left++
			err := c.evict(ctx, p.Name)
			if apierrors.IsTooManyRequests(err) {
				refused++
			} else if err != nil && !apierrors.IsNotFound(err) {
				return false, err.Error()
			}
		}
		d, err := c.AppsV1().Deployments(rendered.Namespace).Get(ctx, worker, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		least = min(least, d.Status.AvailableReplicas)
		return left == 0, fmt.Sprintf("%d pods are left, %d evictions were refused", left, refused)
	})
	if refused == 0 {
		t.Error("no eviction was refused: two workers stood on the node, and the budget gives one at a time")
	}
	if least < replicas-1 {
		t.Errorf("%d workers were available during the drain, want %d at least", least, replicas-1)
	}
	c.available(t, worker, replicas)
	if err := c.Cordon(t.Context(), node, false); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) evict(ctx context.Context, pod string) error {
	return c.PolicyV1().Evictions(rendered.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: rendered.Namespace}})
}

// blocks shows that the drain above ended because of its budgets: a budget that
// allows no disruption refuses every eviction.
func (c cluster) blocks(t *testing.T) {
	set, err := c.base.Patched("PodDisruptionBudget/countersign-api", `[{"op": "remove", "path": "/spec/maxUnavailable"}, {"op": "add", "path": "/spec/minAvailable", "value": 1}]`)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := set.Find("PodDisruptionBudget/countersign-api")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), budget, false); err != nil {
		t.Fatal(err)
	}
	defer c.apply(t, c.base)
	c.Wait(t, "budget", func(ctx context.Context) (bool, string) {
		b, err := c.PolicyV1().PodDisruptionBudgets(rendered.Namespace).Get(ctx, budget.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == 1, fmt.Sprintf("%+v", b.Status)
	})
	pods, err := c.pods(t.Context(), "api")
	if err != nil || len(pods) != 1 {
		t.Fatalf("pods of the API: %d, %v", len(pods), err)
	}
	if err := c.evict(t.Context(), pods[0].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction of the only pod under minAvailable 1: %v, want that it is refused", err)
	}
}
