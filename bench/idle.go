package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/riverqueue/river"

	"github.com/countersign-dev/countersign/bench/application"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// idleCommand is a command that runs without work, with the highest share of a
// processor, in percent, that it may use.
type idleCommand struct {
	name  string
	share float64
}

// idleMemory is the resident memory, in megabytes, that a command without work may have.
const idleMemory = 40

// settleDown is how long the commands run before they are measured: they start,
// prepare statements and collect garbage once.
const settleDown = 30 * time.Second

// idleLength is how long the commands are measured at least: their periodic jobs come once
// a minute.
const idleLength = time.Minute

// measureIdle measures the commands, each as a process of its own, and the database
// server without work, for s.length or at least idleLength; and River's client with its
// defaults before.
func measureIdle(ctx context.Context, s *suite) error {
	if err := s.idleRiver(ctx); err != nil {
		return fmt.Errorf("river: %w", err)
	}
	return s.environment(ctx, "", func(h *environment) error {
		dir, err := os.MkdirTemp("", "countersign-idle-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		login, drop, err := application.Login(ctx, h.pool, h.tenant, "IN ROLE countersign_triage", identity.DBLogin{Tools: []string{"mail:*"}, MaxWaiting: identity.DefaultMaxWaiting})
		if err != nil {
			return err
		}
		defer drop()
		narrow, err := url.Parse(h.url)
		if err != nil {
			return err
		}
		narrow.User = login

		commands := []idleCommand{{"worker", 0.2}, {"api", 0.1}, {"triage", 0.1}}
		children := make([]*process.Child, len(commands))
		for i, c := range commands {
			database := h.url
			if c.name == "triage" {
				database = narrow.String()
			}
			if children[i], err = c.start(ctx, dir, database); err != nil {
				return err
			}
			defer children[i].Stop(process.StopGrace)
		}

		var backend int
		if err := h.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
			return err
		}
		database := process.Parent(backend)
		rest(ctx, settleDown)
		before := make([]time.Duration, len(commands))
		for i := range commands {
			before[i] = process.TreeTime(children[i].PID())
		}
		serverBefore, began := process.TreeTime(database), time.Now()
		rest(ctx, max(s.length, idleLength))
		took := time.Since(began)
		share := func(used time.Duration) float64 { return 100 * float64(used) / float64(took) }
		serverShare := share(process.TreeTime(database) - serverBefore)
		for i, c := range commands {
			resident, highest, _ := process.Memory(children[i].PID())
			s.rep.aimed(c.name+" without work", "% of a processor", share(process.TreeTime(children[i].PID())-before[i]), c.share, nil)
			s.rep.aimed(c.name+", resident", "MB", resident, idleMemory, map[string]float64{"highest": highest})
		}
		s.rep.single("PostgreSQL with all three", "% of a processor", serverShare, nil)
		return ctx.Err()
	})
}

// idleRiver measures River's client in this process.
func (s *suite) idleRiver(ctx context.Context) error {
	url, drop, err := s.srv.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	p, err := newPeerOf(ctx, url, river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}})
	if err != nil {
		return err
	}
	defer p.pool.Close()
	return p.whileWorking(ctx, func() error {
		rest(ctx, settleDown)
		before, began := processorTime(), time.Now()
		rest(ctx, s.length)
		s.rep.single("River's client without work", "% of a processor", 100*float64(processorTime()-before)/float64(time.Since(began)), nil)
		return ctx.Err()
	})
}

// start builds and starts the command in a folder, and returns when it is ready.
func (c idleCommand) start(ctx context.Context, dir, database string) (*process.Child, error) {
	program, err := process.Build(ctx, dir, c.name)
	if err != nil {
		return nil, err
	}
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	probe := "COUNTERSIGN_METRICS_LISTEN="
	if c.name == "api" {
		probe = "COUNTERSIGN_LISTEN="
	}
	return process.StartReady(ctx, program, address, []string{"DATABASE_URL=" + database, "COUNTERSIGN_LOG_LEVEL=error", probe + address})
}

// rest waits until a time is over or ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
