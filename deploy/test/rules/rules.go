// Package rules checks what no schema of Kubernetes can: whether the numbers
// and the names of Countersign's manifests fit each other and the programs. A
// rule is a function of the rendered objects and returns what breaks it, one
// line for each place. It asks no cluster.
package rules

import (
	"time"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// Facts is what the rules know besides the manifests.
type Facts struct {
	// Variables are those that the help of each program names, with whether
	// they are required.
	Variables map[string]map[string]bool
	// Stops is how long each program may take to stop, besides the durations
	// that variables set.
	Stops map[string]time.Duration
	// MaxConnections is what the document asks of the database.
	MaxConnections int
}

// A Rule returns what breaks it.
type Rule func(Facts, rendered.Typed) []string

// Rules returns every rule by its name.
func Rules() map[string]Rule {
	return map[string]Rule{
		"connections fit the database":             connectionsFit,
		"a stop ends before the kill":              stopsInTime,
		"memory limits stand above Go's":           memoryFits,
		"variables are those of the program":       variablesKnown,
		"required variables are set":               variablesSet,
		"secrets go to their workload alone":       secretsApart,
		"an autoscaler alone sets replicas":        replicasOnce,
		"one autoscaler for a Deployment":          autoscalersApart,
		"workers are never scaled to zero":         neverZero,
		"pods of Jobs stand apart":                 jobsApart,
		"budgets let a node be drained":            budgetsAllow,
		"Services reach a port":                    servicesReach,
		"monitors reach a port":                    monitorsReach,
		"policies select a workload":               policiesSelect,
		"every pod is restricted":                  restricted,
		"containers are confined":                  confined,
		"probes ask a port that listens":           probesListen,
		"replicas spread over zones and nodes":     spread,
		"CronJobs do not overlap":                  cronJobsApart,
		"the Job of the migration has the version": jobVersioned,
		"images have one version":                  imagesAlike,
		"model servers stand apart":                modelsApart,
		"model servers are pinned by digest":       modelsPinned,
	}
}
