package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/countersign-dev/countersign/deploy/test/kubetest"
	"github.com/countersign-dev/countersign/deploy/test/rendered"
	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// memory is the ConfigMap of the component memory.
const memory = "countersign-memory"

// mayUse reports whether the workers' service account may do something to a ConfigMap.
func mayUse(ctx context.Context, plane *kubetest.Plane, verb, name string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + rendered.Namespace + ":countersign-worker",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: rendered.Namespace, Verb: verb, Resource: "configmaps", Name: name},
	}}
	answer, err := plane.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// TestMemory applies the component memory, and asks the API server what workers may do.
// The patch is that of internal/action/fence/configmap.
func TestMemory(t *testing.T) {
	t.Parallel()
	plane, ctx := newAPIServer(t), t.Context()
	applied := map[string]bool{"ConfigMap/" + memory: true, "Role/" + memory: true, "RoleBinding/" + memory: true, "ServiceAccount/countersign-worker": true}
	for _, object := range renderedtest.Sets(t)["memory"].Objects {
		if applied[rendered.Name(object)] {
			if err := plane.Apply(ctx, object, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	plane.Wait(t, "the workers may patch their memory", func(ctx context.Context) (bool, string) {
		may, err := mayUse(ctx, plane, "patch", memory)
		return may, fmt.Sprint(err)
	})
	for _, one := range []struct {
		verb, name string
		want       bool
	}{
		{"get", memory, true}, {"patch", memory, true}, {"delete", memory, false}, {"update", memory, false},
		{"list", "", false}, {"create", "", false}, {"get", "countersign-worker", false}, {"patch", "countersign-worker", false},
	} {
		if may, err := mayUse(ctx, plane, one.verb, one.name); err != nil || may != one.want {
			t.Errorf("%s of ConfigMap %q: %t, %v, want %t", one.verb, one.name, may, err, one.want)
		}
	}
	var data map[string]string
	for _, patch := range []string{`{"data":{"a":"1","b":"2"}}`, `{"data":{"b":"3","a":null,"c":null}}`} {
		got, err := plane.CoreV1().ConfigMaps(rendered.Namespace).Patch(ctx, memory, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		data = got.Data
	}
	if want := map[string]string{"b": "3"}; !maps.Equal(data, want) {
		t.Errorf("the ConfigMap has %v, want %v", data, want)
	}
}
