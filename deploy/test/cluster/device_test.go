package cluster_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/countersign-dev/countersign/deploy/test/kubetest"
	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// places checks that the model server runs on the only node with a GPU, which
// nothing else may use, and that a second one waits for another device.
func (c cluster) places(t *testing.T) {
	const gpu, node = "nvidia.com/gpu", "node-gpu"
	if err := c.AddNode(t.Context(), kubetest.Node{Name: node, Zone: "a", GPU: gpu}); err != nil {
		t.Fatal(err)
	}
	c.bindModels(t)
	set, err := renderedtest.Source(t).Render(rendered.Combination{Name: "gpu-nvidia", Folder: "base", Components: []string{
		"components/triage", "components/model-service", "components/gpu-nvidia",
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, set)
	if err := c.Scale(t.Context(), rendered.Namespace, "countersign-model", 2); err != nil {
		t.Fatal(err)
	}

	c.Wait(t, "model servers", func(ctx context.Context) (bool, string) {
		running, waiting := c.placed(ctx, "model")
		return len(running) == 1 && running[0] == node && waiting == 1, fmt.Sprintf("on %v, %d cannot be scheduled", running, waiting)
	})
	for _, component := range []string{"api", "worker", "triage"} {
		running, _ := c.placed(t.Context(), component)
		for _, at := range running {
			if at == node {
				t.Errorf("a pod of %s stands on the node with the GPU", component)
			}
		}
	}
	// Without the device, both find a place.
	if set, err = renderedtest.Source(t).Render(rendered.Combination{Name: "model-service", Folder: "base", Components: []string{
		"components/triage", "components/model-service",
	}}); err != nil {
		t.Fatal(err)
	}
	c.apply(t, set)
	if err := c.Scale(t.Context(), rendered.Namespace, "countersign-model", 2); err != nil {
		t.Fatal(err)
	}
	c.available(t, "countersign-model", 2)
}

// placed returns the nodes of a component's running pods, and the number of
// pods without a node.
func (c cluster) placed(ctx context.Context, component string) (nodes []string, waiting int) {
	pods, err := c.pods(ctx, component)
	if err != nil {
		return nil, 0
	}
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
			nodes = append(nodes, p.Spec.NodeName)
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				waiting++
			}
		}
	}
	return nodes, waiting
}

// bindModels creates the claim with the weights, which an operator fills
// first.
func (c cluster) bindModels(t *testing.T) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "countersign-models", Namespace: rendered.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: new(""), VolumeName: "models", Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "models"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nowhere", Path: "/"}},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: rendered.Namespace, Name: claim.Name},
		},
	}
	if _, err := c.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().PersistentVolumeClaims(rendered.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
