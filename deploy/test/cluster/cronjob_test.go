package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"
)

// schedules has the controller start a Job of the base's CronJob, and hold
// the next back while it runs. A copy that does not forbid shows the
// difference.
func (c cluster) schedules(t *testing.T) {
	typed := renderedtest.Typed(t, c.base)
	at := 0
	for typed.CronJobs[at].Name != "countersign-doctor" {
		at++
	}
	template := typed.CronJobs[at]
	c.addCronJob(t, template, "ends", func(*batchv1.CronJob) {})
	// The pods of these stay Pending, so that their Jobs run on.
	never := map[string]string{"no-node": "has-it"}
	c.addCronJob(t, template, "forbids", func(j *batchv1.CronJob) { j.Spec.JobTemplate.Spec.Template.Spec.NodeSelector = never })
	c.addCronJob(t, template, "allows", func(j *batchv1.CronJob) {
		j.Spec.JobTemplate.Spec.Template.Spec.NodeSelector = never
		j.Spec.ConcurrencyPolicy = batchv1.AllowConcurrent
	})

	c.Wait(t, "a Job by schedule", func(ctx context.Context) (bool, string) {
		jobs := c.jobsOf(ctx, "ends")
		return len(jobs) > 0 && jobs[0].Status.Succeeded == 1, fmt.Sprintf("%d Jobs", len(jobs))
	})
	// The next minute starts a second Job of the one, and none of the other.
	c.Wait(t, "a second Job", func(ctx context.Context) (bool, string) {
		events, err := c.CoreV1().Events(template.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=JobAlreadyActive"})
		if err != nil {
			return false, err.Error()
		}
		return len(events.Items) > 0 && len(c.jobsOf(ctx, "allows")) > 1, fmt.Sprintf("%d Jobs", len(c.jobsOf(ctx, "allows")))
	})
	if got := len(c.jobsOf(t.Context(), "forbids")); got != 1 {
		t.Errorf("%d Jobs of the CronJob that forbids a second one, want 1", got)
	}
}

// addCronJob adds a copy that is due every minute, and already was.
func (c cluster) addCronJob(t *testing.T, from *batchv1.CronJob, name string, change func(*batchv1.CronJob)) {
	t.Helper()
	j := from.DeepCopy()
	j.Name, j.Spec.Schedule = name, "* * * * *"
	change(j)
	jobs := c.BatchV1().CronJobs(j.Namespace)
	made, err := jobs.Create(t.Context(), j, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.LastScheduleTime = &metav1.Time{Time: made.CreationTimestamp.Add(-2 * time.Minute)}
	if _, err := jobs.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// jobsOf returns the Jobs of a CronJob.
func (c cluster) jobsOf(ctx context.Context, cronJob string) []batchv1.Job {
	list, err := c.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var all []batchv1.Job
	for _, j := range list.Items {
		if strings.HasPrefix(j.Name, cronJob+"-") {
			all = append(all, j)
		}
	}
	return all
}
