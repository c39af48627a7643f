package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// fake marks the nodes that kwok plays.
const fake = "kwok.x-k8s.io/node"

// A Node is a simulated node. Its pods start, become ready and end immediately:
// probes, pauses and the order of a stop are not exercised.
type Node struct {
	Name, Zone string
	// GPU is the extended resource of which the node has one, if any. The node
	// then has a taint of that name.
	GPU string
	// Labels are further labels.
	Labels map[string]string
}

// StartControllers starts the controllers, the scheduler and kwok in addition
// to the API server.
func (p *Plane) StartControllers(t testing.TB) {
	t.Helper()
	kwok, err := filepath.Glob(filepath.Join(p.programs, "kwok-*", "kwok"))
	if err != nil || len(kwok) != 1 {
		t.Fatalf("find kwok: %v %v", kwok, err)
	}
	kubeconfig := p.path("kubeconfig.yaml")
	for name, text := range map[string]string{
		"kubeconfig.yaml": fmt.Sprintf(kubeconfigForm, p.path("certs/apiserver.crt"), p.config.Host, token),
		"scheduler.yaml":  fmt.Sprintf(schedulerForm, kubeconfig),
	} {
		if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := filepath.Rel(p.programs, filepath.Dir(kwok[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"kube-controller-manager", "--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
			"--service-account-private-key-file=" + p.path("account.key"), "--use-service-account-credentials=true",
			"--root-ca-file=" + p.path("certs/apiserver.crt")},
		{"kube-scheduler", "--config=" + p.path("scheduler.yaml"), "--secure-port=0"},
		{filepath.Join(folder, "kwok"), "--kubeconfig=" + kubeconfig, "--config=" + filepath.Join(filepath.Dir(kwok[0]), "stages.yaml"),
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + fake + "=fake"},
	} {
		if err := p.run(command[0], command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
}

const kubeconfigForm = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {certificate-authority: %q, server: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

const schedulerForm = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
`

// AddNode adds a node with room for many pods.
func (c Client) AddNode(ctx context.Context, n Node) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, Annotations: map[string]string{fake: "fake"},
		Labels: map[string]string{corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: n.Zone, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
	}}
	for name, value := range n.Labels {
		node.Labels[name] = value
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	if n.GPU != "" {
		room[corev1.ResourceName(n.GPU)] = resource.MustParse("1")
		node.Spec.Taints = []corev1.Taint{{Key: n.GPU, Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	if _, err := c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return c.patchNode(ctx, n.Name, map[string]any{"status": map[string]any{"capacity": room, "allocatable": room}}, "status")
}

// Cordon takes a node out of scheduling, or back in.
func (c Client) Cordon(ctx context.Context, node string, out bool) error {
	return c.patchNode(ctx, node, map[string]any{"spec": map[string]any{"unschedulable": out}})
}

// patchNode changes part of a node, which kwok changes too.
func (c Client) patchNode(ctx context.Context, node string, patch map[string]any, subresources ...string) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	if _, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, text, metav1.PatchOptions{}, subresources...); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	return nil
}

// Wait calls ask until it returns true, or fails the test with the last state.
func (p *Plane) Wait(t testing.TB, what string, ask func(ctx context.Context) (yes bool, state string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	var state string
	err := poll(ctx, func() (bool, error) {
		if gone := p.ended(); gone != nil {
			return false, gone
		}
		yes, now := ask(ctx)
		state = now
		return yes, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %s", what, err, state)
	}
}

// Scale sets the replicas of a Deployment as an autoscaler does.
func (c Client) Scale(ctx context.Context, namespace, deployment string, replicas int32) error {
	deployments := c.AppsV1().Deployments(namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = deployments.UpdateScale(ctx, deployment, scale, metav1.UpdateOptions{FieldManager: "autoscaler"})
		return err
	})
	if err != nil {
		return fmt.Errorf("scale %s: %w", deployment, err)
	}
	return nil
}
