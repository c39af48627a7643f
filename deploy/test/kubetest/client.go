package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// manager is the name under which the tests own fields.
const manager = "countersign-test"

// A Client sends requests to the API server, and treats its warnings as
// errors.
type Client struct {
	kubernetes.Interface

	dynamic dynamic.Interface
	mapper  meta.ResettableRESTMapper
}

func newClient(config *rest.Config) (Client, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Client{}, fmt.Errorf("make a client: %w", err)
	}
	generic, err := dynamic.NewForConfig(config)
	if err != nil {
		return Client{}, fmt.Errorf("make a client: %w", err)
	}
	return Client{
		Interface: typed, dynamic: generic,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery())),
	}, nil
}

// heard collects the warnings of the requests of one context.
type heard struct {
	mu    sync.Mutex
	texts []error
}

type heardKey struct{}

// warnings passes warnings to the listener in the request's context.
type warnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if h, ok := ctx.Value(heardKey{}).(*heard); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.texts = append(h.texts, fmt.Errorf("warning: %s", text))
	}
}

// strictly calls a function and returns the warnings of its requests as
// errors.
func strictly(ctx context.Context, call func(ctx context.Context) error) error {
	var h heard
	err := call(context.WithValue(ctx, heardKey{}, &h))
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(h.texts, err)...)
}

// resource returns where objects of a kind are.
func (c Client) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// Apply applies an object server-side, strictly: an unknown field and a warning
// are errors. With dryRun the object goes through everything but the storage.
func (c Client) Apply(ctx context.Context, object *unstructured.Unstructured, dryRun bool) error {
	name := object.GetKind() + "/" + object.GetName()
	where, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	options := metav1.PatchOptions{FieldManager: manager, Force: new(true), FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if err := strictly(ctx, func(ctx context.Context) error {
		_, err := where.Patch(ctx, object.GetName(), types.ApplyPatchType, text, options)
		return err
	}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Admit submits a pod to a namespace as a dry run, and returns the pod after
// admission. The pod is not stored.
func (c Client) Admit(ctx context.Context, namespace string, template corev1.PodTemplateSpec) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.GenerateName, pod.Namespace = "admit-", namespace
	var admitted *corev1.Pod
	err := strictly(ctx, func(ctx context.Context) error {
		var err error
		admitted, err = c.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		return err
	})
	return admitted, err
}

// AddNamespace makes a namespace with labels, and a service account "default",
// which the controllers would make, if they ran.
func (c Client) AddNamespace(ctx context.Context, name string, labels map[string]string) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := c.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("service account of %s: %w", name, err)
	}
	return nil
}

// AddDefinitions installs the custom resource definitions of the kinds that
// objects have and Kubernetes has not, and waits until the API server serves
// them.
func (p *Plane) AddDefinitions(ctx context.Context, objects []*unstructured.Unstructured) error {
	wanted := map[schema.GroupKind]bool{}
	for _, object := range objects {
		wanted[object.GroupVersionKind().GroupKind()] = true
	}
	files, err := filepath.Glob(filepath.Join(p.programs, "crds", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no custom resource definitions in %s: %w", p.programs, errors.Join(err, os.ErrNotExist))
	}
	var names []string
	for _, file := range files {
		object, err := readObject(file)
		if err != nil {
			return err
		}
		if !wanted[defines(object)] {
			continue
		}
		if err := p.Apply(ctx, object, false); err != nil {
			return err
		}
		names = append(names, object.GetName())
	}
	for _, name := range names {
		if err := p.established(ctx, name); err != nil {
			return err
		}
	}
	p.mapper.Reset()
	return nil
}

// defines returns the kind that a custom resource definition defines.
func defines(object *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

func readObject(file string) (*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	object := &unstructured.Unstructured{}
	text, err = yaml.YAMLToJSON(text)
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return object, nil
}

func (c Client) established(ctx context.Context, definition string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	where, err := c.resource(kind, "")
	if err != nil {
		return err
	}
	err = poll(ctx, func() (bool, error) {
		object, err := where.Get(ctx, definition, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var known struct {
			Status struct{ Conditions []metav1.Condition }
		}
		text, err := object.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &known)
		}
		return meta.IsStatusConditionTrue(known.Status.Conditions, "Established"), err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", definition, err)
	}
	return nil
}
