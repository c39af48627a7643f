package rules

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// selected returns the workloads whose pods a selector matches; a nil selector
// matches none.
func selected(t rendered.Typed, selector *metav1.LabelSelector) []rendered.Workload {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(t.Workloads(), func(w rendered.Workload) bool {
		return !matcher.Matches(labels.Set(w.Template.Labels))
	})
}

func isJob(w rendered.Workload) bool { return w.Kind == "Job" || w.Kind == "CronJob" }

// jobsApart keeps pods of Jobs out of selectors meant for a Deployment: a
// budget would count them, and a Service would send them requests.
func jobsApart(_ Facts, t rendered.Typed) []string {
	var broken []string
	report := func(object string, selector *metav1.LabelSelector) {
		for _, w := range selected(t, selector) {
			if isJob(w) {
				broken = append(broken, fmt.Sprintf("%s selects the pods of %s", object, w))
			}
		}
	}
	for _, b := range t.Budgets {
		report("PodDisruptionBudget/"+b.Name, b.Spec.Selector)
	}
	for _, s := range t.Services {
		if len(s.Spec.Selector) > 0 {
			report("Service/"+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		}
	}
	for _, d := range t.Deployments {
		report("Deployment/"+d.Name, d.Spec.Selector)
	}
	owner := map[string]string{}
	for _, w := range t.Workloads() {
		if other, ok := owner[w.Component]; ok {
			broken = append(broken, fmt.Sprintf("%s and %s have the same component label %q", other, w, w.Component))
		}
		owner[w.Component] = w.String()
	}
	return broken
}

// budgetsAllow finds a budget that selects nothing, or that never lets a pod
// go, and Deployments of several replicas without one.
func budgetsAllow(_ Facts, t rendered.Typed) []string {
	var broken []string
	covered := map[string]bool{}
	for _, b := range t.Budgets {
		pods := selected(t, b.Spec.Selector)
		if len(pods) != 1 {
			broken = append(broken, fmt.Sprintf("PodDisruptionBudget/%s selects the pods of %d workloads, not of one", b.Name, len(pods)))
			continue
		}
		covered[pods[0].Name] = true
		if blocks(t, b, pods[0]) {
			broken = append(broken, fmt.Sprintf("PodDisruptionBudget/%s never lets a pod go, so that a drain of its node does not end", b.Name))
		}
		if b.Spec.UnhealthyPodEvictionPolicy == nil || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
			broken = append(broken, fmt.Sprintf("PodDisruptionBudget/%s keeps pods that are not ready on their node", b.Name))
		}
	}
	for _, d := range t.Deployments {
		if fewest(t, d) > 1 && !covered[d.Name] {
			broken = append(broken, fmt.Sprintf("Deployment/%s has several replicas and no PodDisruptionBudget", d.Name))
		}
	}
	return broken
}

// fewest returns the least number of replicas of a Deployment.
func fewest(t rendered.Typed, d *appsv1.Deployment) int {
	for _, s := range scalers(t) {
		if s.deployment == d.Name {
			return s.least
		}
	}
	if d.Spec.Replicas != nil {
		return int(*d.Spec.Replicas)
	}
	return 1
}

func blocks(t rendered.Typed, b *policyv1.PodDisruptionBudget, w rendered.Workload) bool {
	if b.Spec.MaxUnavailable != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, 100, true)
		return err != nil || n == 0
	}
	replicas := 1
	for _, d := range t.Deployments {
		if d.Name == w.Name {
			replicas = fewest(t, d)
		}
	}
	if b.Spec.MinAvailable == nil {
		return false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, replicas, true)
	return err != nil || n >= replicas
}

// listens reports whether a workload's containers have a port, by name or by
// number.
func listens(w rendered.Workload, port intstr.IntOrString) bool {
	return slices.ContainsFunc(w.Containers(), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal
		})
	})
}

func servicesReach(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, s := range t.Services {
		if len(s.Spec.Selector) == 0 {
			continue
		}
		pods := selected(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		if len(pods) != 1 {
			broken = append(broken, fmt.Sprintf("Service/%s selects the pods of %d workloads, not of one", s.Name, len(pods)))
			continue
		}
		for _, p := range s.Spec.Ports {
			target := p.TargetPort
			if target.IntVal == 0 && target.StrVal == "" {
				target = intstr.FromInt32(p.Port)
			}
			if !listens(pods[0], target) {
				broken = append(broken, fmt.Sprintf("Service/%s: %s has no port %s", s.Name, pods[0], target.String()))
			}
		}
	}
	return broken
}

// monitorsReach checks the PodMonitors and ServiceMonitors of the Prometheus
// operator, which report no error when they select nothing.
func monitorsReach(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, object := range t.Custom {
		field := map[string]string{"PodMonitor": "podMetricsEndpoints", "ServiceMonitor": "endpoints"}[object.GetKind()]
		if field == "" {
			continue
		}
		matcher := selectorOf(object)
		var pods []rendered.Workload
		if object.GetKind() == "PodMonitor" {
			pods = slices.DeleteFunc(t.Workloads(), func(w rendered.Workload) bool { return !matcher.Matches(labels.Set(w.Template.Labels)) })
		} else {
			for _, s := range t.Services {
				if matcher.Matches(labels.Set(s.Labels)) {
					pods = append(pods, selected(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})...)
				}
			}
		}
		if len(pods) == 0 {
			broken = append(broken, fmt.Sprintf("%s selects nothing", rendered.Name(object)))
		}
		endpoints, _, _ := unstructured.NestedSlice(object.Object, "spec", field)
		for _, endpoint := range endpoints {
			fields, _ := endpoint.(map[string]any)
			name, _ := fields["port"].(string)
			for _, w := range pods {
				if !listens(w, intstr.FromString(name)) {
					broken = append(broken, fmt.Sprintf("%s: %s has no port %q", rendered.Name(object), w, name))
				}
			}
		}
	}
	return broken
}

func selectorOf(object *unstructured.Unstructured) labels.Selector {
	var selector metav1.LabelSelector
	fields, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return labels.Nothing()
	}
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return labels.Nothing()
	}
	return matcher
}

// operated reports whether a selector matches pods that the operator
// CloudNativePG creates for a custom resource.
func operated(selector metav1.LabelSelector) bool {
	for label := range selector.MatchLabels {
		if strings.HasPrefix(label, "cnpg.io/") {
			return true
		}
	}
	return false
}

// policiesSelect finds the misspelt label: a policy that selects no pod, and a
// component that it names and no workload of the set has. Names that belong to
// components of other combinations are known.
func policiesSelect(_ Facts, t rendered.Typed) []string {
	known := []string{"api", "worker", "triage", "migrate", "triage-run", "doctor", "audit-verify", "model"}
	for _, w := range t.Workloads() {
		known = append(known, w.Component)
	}
	var broken []string
	for _, p := range t.Policies {
		if len(selected(t, &p.Spec.PodSelector)) == 0 && !operated(p.Spec.PodSelector) {
			broken = append(broken, fmt.Sprintf("NetworkPolicy/%s selects no pod", p.Name))
		}
		selectors := []*metav1.LabelSelector{&p.Spec.PodSelector}
		for _, rule := range p.Spec.Ingress {
			for _, peer := range rule.From {
				selectors = append(selectors, peer.PodSelector)
			}
		}
		for _, rule := range p.Spec.Egress {
			for _, peer := range rule.To {
				selectors = append(selectors, peer.PodSelector)
			}
		}
		for _, component := range components(selectors) {
			if !slices.Contains(known, component) {
				broken = append(broken, fmt.Sprintf("NetworkPolicy/%s names the component %q, which no workload has", p.Name, component))
			}
		}
	}
	return broken
}

// components returns the values of the component label that selectors require.
func components(selectors []*metav1.LabelSelector) []string {
	var all []string
	for _, s := range selectors {
		if s == nil {
			continue
		}
		if component := s.MatchLabels[rendered.ComponentLabel]; component != "" {
			all = append(all, component)
		}
		for _, e := range s.MatchExpressions {
			if e.Key == rendered.ComponentLabel {
				all = append(all, e.Values...)
			}
		}
	}
	return all
}
