package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/program"
	"github.com/countersign-dev/countersign/bench/process"
)

// skewOf returns the clock skew of the worker in a slot: minutes ahead,
// minutes behind or none, in turn.
func skewOf(slot int) time.Duration {
	return []time.Duration{7 * time.Minute, -5 * time.Minute, 0}[slot%3]
}

// startWorker starts cmd/worker in a slot.
func (t *faultRun) startWorker(slot, generation int) (*process.Child, error) {
	env := []string{
		"DATABASE_URL=" + t.databaseURL,
		fmt.Sprintf("COUNTERSIGN_WORKER_ID=%s-%d.%d", t.fault.name, slot+1, generation),
		"COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8", // where the tool listens
		"COUNTERSIGN_CONCURRENCY=" + strconv.Itoa(t.concurrency),
		"COUNTERSIGN_LEASE=" + t.lease.String(),
		"COUNTERSIGN_LOG_LEVEL=warn",
	}
	if t.fault.skewed {
		env = append(env, program.SkewEnv+"="+skewOf(slot).String(), "COUNTERSIGN_LOG_LEVEL=info") // to log a line with its time
	}
	return process.Start(t.program, env, t.log.File, t.log.File)
}
