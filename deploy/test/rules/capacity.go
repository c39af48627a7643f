package rules

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// reserved is PostgreSQL's superuser_reserved_connections.
const reserved = 3

// A scaler is an object that sets the number of a Deployment's replicas.
type scaler struct {
	object     string // KIND/NAME
	deployment string
	least      int
	most       int
	// connections is the number of database connections of the scaler itself.
	connections int
}

// scalers returns the HorizontalPodAutoscalers and KEDA's ScaledObjects.
func scalers(t rendered.Typed) []scaler {
	var all []scaler
	for _, h := range t.Autoscalers {
		least := 1
		if h.Spec.MinReplicas != nil {
			least = int(*h.Spec.MinReplicas)
		}
		if h.Spec.ScaleTargetRef.Kind == "Deployment" {
			all = append(all, scaler{object: "HorizontalPodAutoscaler/" + h.Name, deployment: h.Spec.ScaleTargetRef.Name, least: least, most: int(h.Spec.MaxReplicas)})
		}
	}
	for _, object := range t.Custom {
		if object.GetKind() != "ScaledObject" {
			continue
		}
		s := scaler{object: rendered.Name(object), most: 100}
		s.deployment, _, _ = unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "name")
		if kind, ok, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "kind"); ok && kind != "Deployment" {
			continue
		}
		s.least = whole(object, "spec", "minReplicaCount")
		if most := whole(object, "spec", "maxReplicaCount"); most > 0 {
			s.most = most
		}
		triggers, _, _ := unstructured.NestedSlice(object.Object, "spec", "triggers")
		for _, trigger := range triggers {
			if fields, ok := trigger.(map[string]any); ok && fields["type"] == "postgresql" {
				s.connections++
			}
		}
		all = append(all, s)
	}
	return all
}

func whole(object *unstructured.Unstructured, fields ...string) int {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	switch n := value.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// most returns the highest number of pods of a Deployment, including a rolling
// update.
func most(t rendered.Typed, d *appsv1.Deployment) int {
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	for _, s := range scalers(t) {
		if s.deployment == d.Name {
			replicas = max(replicas, s.most)
		}
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return replicas
	}
	surge := intstr.FromString("25%")
	if update := d.Spec.Strategy.RollingUpdate; update != nil && update.MaxSurge != nil {
		surge = *update.MaxSurge
	}
	extra, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	if err != nil {
		return replicas * 2
	}
	return replicas + extra
}

func connectionsFit(f Facts, t rendered.Typed) []string {
	sum, lines := reserved, []string{fmt.Sprintf("%d reserved", reserved)}
	count := func(name string, pods int, spec corev1.PodSpec) {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			env, program := environmentOf(t, c), Program(c)
			if program == "" || env.secrets["DATABASE_URL"] == "" && env.values["DATABASE_URL"] == "" {
				continue
			}
			each := connections(program, env.number("COUNTERSIGN_DB_MAX_CONNS", 0))
			sum += pods * each
			lines = append(lines, fmt.Sprintf("%s %d × %d", name, pods, each))
		}
	}
	for _, d := range t.Deployments {
		count(d.Name, most(t, d), d.Spec.Template.Spec)
	}
	for _, j := range t.Jobs {
		count(j.Name, 1, j.Spec.Template.Spec)
	}
	for _, c := range t.CronJobs {
		count(c.Name, 1, c.Spec.JobTemplate.Spec.Template.Spec)
	}
	for _, s := range scalers(t) {
		if s.connections > 0 {
			sum += s.connections
			lines = append(lines, fmt.Sprintf("%s %d", s.object, s.connections))
		}
	}
	limit := f.MaxConnections
	for _, object := range t.Custom {
		text, ok, _ := unstructured.NestedString(object.Object, "spec", "postgresql", "parameters", "max_connections")
		if n, err := strconv.Atoi(text); ok && err == nil {
			limit = n
		}
	}
	if sum > limit {
		return []string{fmt.Sprintf("connections: %d at most, and max_connections is %d: %v", sum, limit, lines)}
	}
	return nil
}

func stopsInTime(f Facts, t rendered.Typed) []string {
	var broken []string
	ours(t, func(w rendered.Workload, c corev1.Container, program string) {
		stop, ok := f.Stops[program]
		if !ok {
			return // a command of a Job ends immediately
		}
		env := environmentOf(t, c)
		switch program {
		case "api":
			stop += env.duration("COUNTERSIGN_LINGER", 5*time.Second)
		case "worker":
			stop += env.duration("COUNTERSIGN_GRACE", 20*time.Second)
		}
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
			stop += time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
		grace := 30 * time.Second
		if s := w.Template.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		if stop >= grace {
			broken = append(broken, fmt.Sprintf("%s: container %s may take %s to stop, and is killed after %s", w, c.Name, stop, grace))
		}
	})
	return broken
}

func memoryFits(_ Facts, t rendered.Typed) []string {
	var broken []string
	ours(t, func(w rendered.Workload, c corev1.Container, _ string) {
		limit, ok := c.Resources.Limits[corev1.ResourceMemory]
		if !ok {
			return // confined reports it
		}
		text := environmentOf(t, c).values["GOMEMLIMIT"]
		n := len(text)
		if n == 0 || text[n-1] != 'B' {
			broken = append(broken, fmt.Sprintf("%s: container %s has no GOMEMLIMIT such as 460MiB", w, c.Name))
			return
		}
		// Go's units are those of Kubernetes and a B.
		soft, err := resource.ParseQuantity(text[:n-1])
		if err != nil || soft.Value()*20 > limit.Value()*19 {
			broken = append(broken, fmt.Sprintf("%s: container %s: GOMEMLIMIT=%s leaves less than a twentieth of the limit %s", w, c.Name, text, limit.String()))
		}
	})
	return broken
}

func replicasOnce(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, s := range scalers(t) {
		at := slices.IndexFunc(t.Deployments, func(d *appsv1.Deployment) bool { return d.Name == s.deployment })
		if at < 0 {
			broken = append(broken, fmt.Sprintf("%s: no Deployment %s", s.object, s.deployment))
		} else if t.Deployments[at].Spec.Replicas != nil {
			broken = append(broken, fmt.Sprintf("%s: Deployment/%s has replicas too, so that each apply resets what the autoscaler set", s.object, s.deployment))
		}
	}
	return broken
}

func autoscalersApart(_ Facts, t rendered.Typed) []string {
	var broken []string
	first := map[string]string{}
	for _, s := range scalers(t) {
		if other, ok := first[s.deployment]; ok {
			broken = append(broken, fmt.Sprintf("%s and %s both scale Deployment/%s", other, s.object, s.deployment))
		}
		first[s.deployment] = s.object
	}
	return broken
}

// neverZero protects the work that only a running worker does: expiry,
// checkpoints, retention. An API with zero replicas answers no request.
func neverZero(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, s := range scalers(t) {
		at := slices.IndexFunc(t.Deployments, func(d *appsv1.Deployment) bool { return d.Name == s.deployment })
		if at < 0 || s.least > 0 {
			continue
		}
		if component := t.Deployments[at].Spec.Template.Labels[rendered.ComponentLabel]; component == "api" || component == "worker" {
			broken = append(broken, fmt.Sprintf("%s may scale Deployment/%s to zero", s.object, s.deployment))
		}
	}
	return broken
}

func cronJobsApart(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, c := range t.CronJobs {
		for fault, found := range map[string]bool{
			"concurrencyPolicy is not Forbid":      c.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent,
			"has no timeZone":                      c.Spec.TimeZone == nil,
			"has no startingDeadlineSeconds":       c.Spec.StartingDeadlineSeconds == nil,
			"its Job has no activeDeadlineSeconds": c.Spec.JobTemplate.Spec.ActiveDeadlineSeconds == nil,
		} {
			if found {
				broken = append(broken, fmt.Sprintf("CronJob/%s: %s", c.Name, fault))
			}
		}
	}
	return broken
}
