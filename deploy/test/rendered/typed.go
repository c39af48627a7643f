package rendered

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Typed is the objects of a set in Kubernetes' own types.
type Typed struct {
	Set

	Deployments  []*appsv1.Deployment
	StatefulSets []*appsv1.StatefulSet
	Jobs         []*batchv1.Job
	CronJobs     []*batchv1.CronJob
	Services     []*corev1.Service
	ConfigMaps   []*corev1.ConfigMap
	Budgets      []*policyv1.PodDisruptionBudget
	Policies     []*networkingv1.NetworkPolicy
	Autoscalers  []*autoscalingv2.HorizontalPodAutoscaler
	// Custom is every object of a kind that Kubernetes itself does not have.
	Custom []*unstructured.Unstructured
}

// A Workload is an object that makes pods.
type Workload struct {
	// Kind is Deployment, StatefulSet, Job or CronJob.
	Kind, Name string
	// Component is the label by which everything selects the pods.
	Component string
	Template  corev1.PodTemplateSpec
	// Replicas is the number in the manifest, if it has one; 1 for Jobs.
	Replicas *int32
	Strategy appsv1.DeploymentStrategy
}

// ComponentLabel distinguishes the pods of one workload from those of the
// others.
const ComponentLabel = "app.kubernetes.io/component"

// Workloads returns every object that makes pods.
func (t Typed) Workloads() []Workload {
	var all []Workload
	add := func(kind, name string, template corev1.PodTemplateSpec, replicas *int32, strategy appsv1.DeploymentStrategy) {
		all = append(all, Workload{
			Kind: kind, Name: name, Component: template.Labels[ComponentLabel],
			Template: template, Replicas: replicas, Strategy: strategy,
		})
	}
	for _, d := range t.Deployments {
		add("Deployment", d.Name, d.Spec.Template, d.Spec.Replicas, d.Spec.Strategy)
	}
	for _, s := range t.StatefulSets {
		s = s.DeepCopy()
		for _, claim := range s.Spec.VolumeClaimTemplates {
			s.Spec.Template.Spec.Volumes = append(s.Spec.Template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + s.Name + "-0"},
			}})
		}
		add("StatefulSet", s.Name, s.Spec.Template, s.Spec.Replicas, appsv1.DeploymentStrategy{})
	}
	for _, j := range t.Jobs {
		add("Job", j.Name, j.Spec.Template, j.Spec.Parallelism, appsv1.DeploymentStrategy{})
	}
	for _, c := range t.CronJobs {
		add("CronJob", c.Name, c.Spec.JobTemplate.Spec.Template, c.Spec.JobTemplate.Spec.Parallelism, appsv1.DeploymentStrategy{})
	}
	return all
}

// Containers returns the workload's containers, including init containers.
func (w Workload) Containers() []corev1.Container {
	return slices.Concat(w.Template.Spec.InitContainers, w.Template.Spec.Containers)
}

// String returns KIND/NAME.
func (w Workload) String() string { return w.Kind + "/" + w.Name }

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// Typed reads the objects strictly: a field that a type does not have is an
// error, one for each object. The other objects are returned together with the
// errors.
func (s Set) Typed() (Typed, []error) {
	known := scheme()
	strict := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	typed := Typed{Set: s}
	var wrong []error
	for _, object := range s.Objects {
		if !known.Recognizes(object.GroupVersionKind()) {
			typed.Custom = append(typed.Custom, object)
			continue
		}
		text, err := object.MarshalJSON()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %s: %w", s.Name, Name(object), err))
			continue
		}
		decoded, _, err := strict.Decode(text, nil, nil)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %s: %w", s.Name, Name(object), err))
		}
		typed.add(decoded)
	}
	return typed, wrong
}

func (t *Typed) add(object runtime.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		t.Deployments = append(t.Deployments, o)
	case *appsv1.StatefulSet:
		t.StatefulSets = append(t.StatefulSets, o)
	case *batchv1.Job:
		t.Jobs = append(t.Jobs, o)
	case *batchv1.CronJob:
		t.CronJobs = append(t.CronJobs, o)
	case *corev1.Service:
		t.Services = append(t.Services, o)
	case *corev1.ConfigMap:
		t.ConfigMaps = append(t.ConfigMaps, o)
	case *policyv1.PodDisruptionBudget:
		t.Budgets = append(t.Budgets, o)
	case *networkingv1.NetworkPolicy:
		t.Policies = append(t.Policies, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		t.Autoscalers = append(t.Autoscalers, o)
	}
}
