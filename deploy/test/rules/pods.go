package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// restricted uses the API server's own code for pod security.
func restricted(_ Facts, t rendered.Typed) []string {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []string{err.Error()}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var broken []string
	for _, w := range t.Workloads() {
		for _, result := range evaluator.EvaluatePod(level, &w.Template.ObjectMeta, &w.Template.Spec) {
			if !result.Allowed {
				broken = append(broken, fmt.Sprintf("%s: %s: %s", w, result.ForbiddenReason, result.ForbiddenDetail))
			}
		}
	}
	return broken
}

// confined checks the rules beyond restricted: no token of Kubernetes, except for the
// memory of workers, a read-only root file system, and bounded resources.
func confined(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, w := range t.Workloads() {
		if token := w.Template.Spec.AutomountServiceAccountToken; token == nil || *token {
			broken = append(broken, fmt.Sprintf("%s gets a token of Kubernetes", w))
		}
		for _, v := range w.Template.Spec.Volumes {
			if v.Projected == nil || w.Component == "worker" {
				continue
			}
			if slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
				broken = append(broken, fmt.Sprintf("%s gets a token of Kubernetes", w))
			}
		}
		if w.Template.Spec.EnableServiceLinks == nil || *w.Template.Spec.EnableServiceLinks {
			broken = append(broken, fmt.Sprintf("%s gets variables of every Service", w))
		}
		for _, c := range w.Containers() {
			if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
				broken = append(broken, fmt.Sprintf("%s: container %s can write its root file system", w, c.Name))
			}
			_, cpu := c.Resources.Requests[corev1.ResourceCPU]
			_, memory := c.Resources.Requests[corev1.ResourceMemory]
			_, limit := c.Resources.Limits[corev1.ResourceMemory]
			if !cpu || !memory || !limit {
				broken = append(broken, fmt.Sprintf("%s: container %s does not request CPU and memory, or has no limit of memory", w, c.Name))
			}
		}
	}
	return broken
}

// probesListen checks that probes use a port of their own container, and that
// no liveness probe checks readiness: an unavailable database would have every
// pod killed.
func probesListen(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, w := range t.Workloads() {
		for _, c := range w.Containers() {
			probes := map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe}
			for _, kind := range slices.Sorted(maps.Keys(probes)) {
				probe := probes[kind]
				if probe == nil && w.Kind == "Deployment" && len(w.Template.Spec.Containers) > 0 && c.Name == w.Template.Spec.Containers[0].Name {
					broken = append(broken, fmt.Sprintf("%s: container %s has no %s probe", w, c.Name, kind))
				}
				if probe == nil || probe.HTTPGet == nil {
					continue
				}
				own := rendered.Workload{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}}
				if !listens(own, probe.HTTPGet.Port) {
					broken = append(broken, fmt.Sprintf("%s: container %s: the %s probe asks port %s, which it does not have", w, c.Name, kind, probe.HTTPGet.Port.String()))
				}
				if kind == "liveness" && strings.HasPrefix(probe.HTTPGet.Path, "/readyz") {
					broken = append(broken, fmt.Sprintf("%s: container %s is killed when it is not ready", w, c.Name))
				}
			}
		}
	}
	return broken
}

func spread(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, d := range t.Deployments {
		if most(t, d) < 2 || d.Spec.Template.Labels[rendered.ComponentLabel] == "model" {
			continue // a model server may run only where its device is
		}
		keys := []string{corev1.LabelTopologyZone, corev1.LabelHostname}
		for _, constraint := range d.Spec.Template.Spec.TopologySpreadConstraints {
			matcher, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
			if err == nil && matcher.Matches(labels.Set(d.Spec.Template.Labels)) {
				keys = slices.DeleteFunc(keys, func(key string) bool { return key == constraint.TopologyKey })
			}
		}
		for _, key := range keys {
			broken = append(broken, fmt.Sprintf("Deployment/%s does not spread its own pods over %s", d.Name, key))
		}
	}
	return broken
}

// modelsApart checks that no foreign program shares a pod, and so the network,
// with one of Countersign's, and that no policy allows outgoing traffic of a
// model server.
func modelsApart(_ Facts, t rendered.Typed) []string {
	var broken []string
	for _, w := range t.Workloads() {
		own := slices.ContainsFunc(w.Containers(), func(c corev1.Container) bool { return Program(c) != "" })
		for _, c := range w.Containers() {
			if own && Program(c) == "" {
				broken = append(broken, fmt.Sprintf("%s: container %s is of others, and shares the network of Countersign's", w, c.Name))
			}
		}
	}
	for _, p := range t.Policies {
		lets := len(p.Spec.Egress) > 0 && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		for _, w := range selected(t, &p.Spec.PodSelector) {
			if lets && w.Component == "model" {
				broken = append(broken, fmt.Sprintf("NetworkPolicy/%s lets %s out", p.Name, w))
			}
		}
	}
	return broken
}

// modelsPinned checks that the program that reads text of mail cannot change
// without a change of the manifests.
func modelsPinned(_ Facts, t rendered.Typed) []string {
	digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	var broken []string
	for _, w := range t.Workloads() {
		for _, c := range w.Containers() {
			if w.Component == "model" && !digest.MatchString(c.Image) {
				broken = append(broken, fmt.Sprintf("%s: the image %s has no digest", w, c.Image))
			}
		}
	}
	return broken
}

// secretsApart checks that each password is only where it is needed: above
// all, the login that may change the schema is not the one that serves
// requests.
func secretsApart(_ Facts, t rendered.Typed) []string {
	may := map[string][]string{
		"countersign-owner":  {"migrate"},
		"countersign-api":    {"api"},
		"countersign-worker": {"worker", "doctor"},
		"countersign-triage": {"triage", "triage-run"},
		"countersign-token":  {"audit-verify"},
	}
	keys := map[string][]string{
		"COUNTERSIGN_SECRET_KEY": {"api", "worker"},
		"COUNTERSIGN_TRIAGE_KEY": {"api", "triage", "triage-run"},
	}
	var broken []string
	for _, w := range t.Workloads() {
		for _, c := range w.Containers() {
			for variable, secret := range environmentOf(t, c).secrets {
				allowed, known := may[secret]
				if secret == "countersign-keys" {
					allowed, known = keys[variable], true
				}
				if known && !slices.Contains(allowed, w.Component) {
					broken = append(broken, fmt.Sprintf("%s: container %s has %s of the Secret %s, which is for %v", w, c.Name, variable, secret, allowed))
				}
			}
		}
		for _, v := range w.Template.Spec.Volumes {
			if v.Secret != nil && may[v.Secret.SecretName] != nil {
				broken = append(broken, fmt.Sprintf("%s mounts the Secret %s, which belongs into variables", w, v.Secret.SecretName))
			}
		}
	}
	return broken
}

// variablesKnown checks names only: the programs themselves check the values.
func variablesKnown(f Facts, t rendered.Typed) []string {
	var broken []string
	ours(t, func(w rendered.Workload, c corev1.Container, program string) {
		env := environmentOf(t, c)
		for _, name := range env.missing {
			broken = append(broken, fmt.Sprintf("%s: no ConfigMap %s", w, name))
		}
		known, ok := f.Variables[program]
		if !ok {
			broken = append(broken, fmt.Sprintf("%s: container %s runs %q, whose help is unknown", w, c.Name, program))
			return
		}
		names := slices.Concat(slices.Collect(maps.Keys(env.values)), slices.Collect(maps.Keys(env.secrets)))
		for _, name := range names {
			_, found := known[name]
			if !found && !strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "COUNTERSIGN_TRIAGE_SECRET_") {
				broken = append(broken, fmt.Sprintf("%s: container %s sets %s, which the help of %s does not name", w, c.Name, name, program))
			}
		}
	})
	return broken
}

func variablesSet(f Facts, t rendered.Typed) []string {
	var broken []string
	ours(t, func(w rendered.Workload, c corev1.Container, program string) {
		env := environmentOf(t, c)
		for name, required := range f.Variables[program] {
			if required && env.values[name] == "" && env.secrets[name] == "" {
				broken = append(broken, fmt.Sprintf("%s: container %s does not set %s", w, c.Name, name))
			}
		}
		// Their defaults reach nothing in a pod.
		for name, only := range map[string]string{"COUNTERSIGN_LISTEN": "api", "COUNTERSIGN_METRICS_LISTEN": ""} {
			daemon := !isJob(w) && slices.Contains([]string{"api", "worker", "triage"}, program)
			if (program == only || only == "" && daemon) && !strings.HasPrefix(env.values[name], ":") {
				broken = append(broken, fmt.Sprintf("%s: container %s listens on %s=%q, which no probe reaches", w, c.Name, name, env.values[name]))
			}
		}
	})
	return broken
}
