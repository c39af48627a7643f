package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

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

// measureIdle measures the commands, each as a process of its own, and the database
// server without work, for s.length.
func measureIdle(ctx context.Context, s *suite) error {
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
			program, err := process.Build(ctx, dir, c.name)
			if err != nil {
				return err
			}
			address, err := process.FreeAddress()
			if err != nil {
				return err
			}
			env := []string{"DATABASE_URL=" + h.url, "COUNTERSIGN_LOG_LEVEL=error"}
			probe := "COUNTERSIGN_METRICS_LISTEN="
			switch c.name {
			case "api":
				probe = "COUNTERSIGN_LISTEN="
			case "triage":
				env[0] = "DATABASE_URL=" + narrow.String()
			}
			if children[i], err = process.Start(program, append(env, probe+address), nil, os.Stderr); err != nil {
				return err
			}
			defer children[i].Stop(process.StopGrace)
			err = process.Poll(ctx, 100*time.Millisecond, func() (bool, error) { return process.Ready("http://" + address), nil })
			if err != nil {
				return fmt.Errorf("%s is not ready: %w", c.name, err)
			}
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
		rest(ctx, s.length)
		took := time.Since(began)
		share := func(used time.Duration) float64 { return 100 * float64(used) / float64(took) }
		serverShare := share(process.TreeTime(database) - serverBefore)
		for i, c := range commands {
			resident, highest, _ := process.Memory(children[i].PID())
			s.rep.aimed(c.name+" without work", "% of a processor", share(process.TreeTime(children[i].PID())-before[i]), c.share, nil)
			s.rep.aimed(c.name+", resident", "MB", resident, idleMemory, map[string]float64{"highest": highest})
		}
		s.rep.single("PostgreSQL beside all three", "% of a processor", serverShare, nil)
		return ctx.Err()
	})
}

// rest waits, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
