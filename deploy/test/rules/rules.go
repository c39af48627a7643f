// Package rules checks the rules that no schema of Kubernetes can express:
// whether the numbers and the names of Countersign's manifests match each
// other and the programs. A rule is a function of the rendered objects and
// returns its violations, one line for each place. It needs no cluster.
package rules

import (
	"time"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// Facts is the input of the rules in addition to the manifests.
type Facts struct {
	// Variables are those that the help of each program names, with whether they
	// are required.
	Variables map[string]map[string]bool
	// Stops is the time that each program may take to stop, in addition to the
	// durations that variables set.
	Stops map[string]time.Duration
	// MaxConnections is the document's requirement for the database.
	MaxConnections int
}

// A Rule returns its violations.
type Rule func(Facts, rendered.Typed) []string

// Rules returns every rule by its name.
func Rules() map[string]Rule {
	return map[string]Rule{
		"connections fit the database":             connectionsFit,
		"commits wait for a standby":               commitsReplicated,
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
