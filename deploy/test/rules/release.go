package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// jobVersioned checks a condition of upgrades: the template of a Job cannot
// change, so each version has its own Job.
func jobVersioned(_ Facts, t rendered.Typed) []string {
	const hour = 3600
	var broken []string
	for _, j := range t.Jobs {
		if len(j.Spec.Template.Spec.Containers) == 0 || Program(j.Spec.Template.Spec.Containers[0]) == "" {
			continue
		}
		version := rendered.Version(j.Spec.Template.Spec.Containers[0].Image)
		plain := strings.NewReplacer(".", "-", "+", "-", "_", "-").Replace(strings.ToLower(version))
		if version == "" || !strings.HasSuffix(j.Name, "-"+plain) {
			broken = append(broken, fmt.Sprintf("Job/%s does not end in the version %q of its image", j.Name, version))
		}
		if ttl := j.Spec.TTLSecondsAfterFinished; ttl == nil || *ttl < hour {
			broken = append(broken, fmt.Sprintf("Job/%s is gone within the hour, and a GitOps controller makes it again and again", j.Name))
		}
	}
	return broken
}

// imagesAlike checks that every image of Countersign has one version, which is
// also the version of the label.
func imagesAlike(_ Facts, t rendered.Typed) []string {
	var broken, versions []string
	for _, w := range t.Workloads() {
		for _, c := range w.Containers() {
			if Program(c) == "" {
				continue
			}
			version := rendered.Version(c.Image)
			if !strings.Contains(c.Image, ":") || version == "latest" {
				broken = append(broken, fmt.Sprintf("%s: the image %s has no version", w, c.Image))
			}
			if !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
			if label := w.Template.Labels["app.kubernetes.io/version"]; label != version {
				broken = append(broken, fmt.Sprintf("%s: the label of the version is %q, and the image is %s", w, label, c.Image))
			}
		}
	}
	if len(versions) > 1 {
		broken = append(broken, fmt.Sprintf("images of several versions: %v", versions))
	}
	return broken
}
