package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/bench/process"
)

// replicas is the number of processes of each program.
const replicas = 2

// deployment is the processes of a run.
type deployment struct {
	host     *host
	scenario scenario
	url      string
	balancer *balancer
	all      []*replica
	// took is the longest time from SIGTERM to the end, by program.
	took map[string]time.Duration
}

// replica is one process.
type replica struct {
	*container
	program         string
	address, probes string
}

func (d *deployment) start(ctx context.Context) error {
	d.took = make(map[string]time.Duration)
	for range replicas {
		for _, program := range []string{"worker", "api"} {
			if _, err := d.add(ctx, program); err != nil {
				return err
			}
		}
	}
	return nil
}

// add starts a process and waits until it is ready. Only then it gets requests.
func (d *deployment) add(ctx context.Context, program string) (r *replica, err error) {
	r = &replica{program: program}
	for _, to := range []*string{&r.address, &r.probes} {
		if *to, err = process.FreeAddress(); err != nil {
			return nil, err
		}
	}
	environ := []string{"DATABASE_URL=" + d.url, "COUNTERSIGN_METRICS_LISTEN=" + r.probes, "COUNTERSIGN_LOG_LEVEL=error"}
	switch program {
	case "api":
		environ = append(environ, "COUNTERSIGN_LISTEN="+r.address, "COUNTERSIGN_LINGER="+d.scenario.linger.String())
	case "worker":
		environ = append(environ, "COUNTERSIGN_GRACE="+d.scenario.grace.String(), "COUNTERSIGN_LEASE=5s", "COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8")
	}
	if r.container, err = d.host.start([]string{"/" + program}, environ...); err != nil {
		return nil, err
	}
	d.all = append(d.all, r)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = process.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		if r.hasEnded() {
			return false, fmt.Errorf("%s ended: %s", program, r.child.State())
		}
		return process.Ready("http://" + r.probes), nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s is not ready: %w", program, err)
	}
	if program == "api" {
		// Its port opens a moment later than its probes answer.
		err = process.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
			conn, err := net.Dial("tcp", r.address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil, nil
		})
		d.balancer.add(r.address)
	}
	return r, err
}

// replaceAll replaces every process of the beginning, one after another.
func (d *deployment) replaceAll(ctx context.Context) error {
	for _, old := range slices.Clone(d.all) {
		if err := process.Wait(ctx, warm); err != nil {
			return err
		}
		if _, err := d.add(ctx, old.program); err != nil {
			return err
		}
		// The balancer gets the end independently, and later.
		drop := time.AfterFunc(lag, func() { d.balancer.remove(old.address) })
		took, err := old.terminate(ctx, d.scenario.kill)
		if err != nil {
			drop.Stop()
			return err
		}
		d.took[old.program] = max(d.took[old.program], took)
		if err := process.Wait(ctx, max(0, lag-took)); err != nil {
			return err
		}
	}
	return process.Wait(ctx, warm)
}

// stop ends the running programs.
func (d *deployment) stop() {
	for _, r := range d.all {
		if !r.hasEnded() {
			r.kill()
		}
	}
}
