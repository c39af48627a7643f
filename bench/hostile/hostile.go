// Package hostile measures the effect on one tenant while another one attacks the
// API: with bodies that are costly to read, with arguments and schemas that are
// costly to check, and with connections on which little is sent or nothing is
// read. The API is a separate process.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/bench/process"
)

// Config configures a run.
type Config struct {
	// URL is the superuser URL of an empty database.
	URL string
	// Rounds is the number of measurements, each without the attack and then with
	// it.
	Rounds int
	// Bodies is the number of generated bodies sent in all rounds, in addition to
	// the known ones, each of which is sent once per round. Zero sends none of
	// either.
	Bodies int
	// Silent is the number of silent connections that the attacker keeps open.
	Silent int
	// Quiet is the time for which the other tenant works before each attack, and
	// the least duration of each attack.
	Quiet time.Duration
	// Attackers bounds the attacker's open requests, and Rate the requests and
	// silent connections that it begins per second.
	Attackers, Rate int
}

// Round has the other tenant's latencies without the attack and, right
// afterwards, with it.
type Round struct{ QuietP50, QuietP99, P50, P99 time.Duration }

// Ratio returns P99 by QuietP99.
func (r Round) Ratio() float64 { return float64(r.P99) / float64(r.QuietP99) }

// Result is the result of a measurement.
type Result struct {
	Rounds []Round
	// Served counts the requests of the other tenant that were answered during the
	// attacks, Failed the unexpected answers among them.
	Served, Failed int
	// Sent counts the attacker's requests by the status of their answers; 0 is
	// none.
	Sent map[int]int
	// Opened counts the silent connections by kind, and Ended those that the API
	// ended by its answer. Held is the highest number open concurrently.
	Opened, Ended map[string]int
	Held          int
	// Took is the duration of the attacks.
	Took time.Duration
	// PeakBytes is the most memory that the API's process had.
	PeakBytes int64
	// Slowest has the attacker's slowest requests.
	Slowest []Slow
	// Beside counts, by name, the attacker's requests that were open during the
	// slowest hundredth of the other tenant's, and Late is the size of that
	// hundredth.
	Beside map[string]int
	Late   int
}

// Slow is a request of the attacker that took long.
type Slow struct {
	Name string
	Took time.Duration
}

// Goals: in the median of the rounds, the other tenant's p99 may be at most
// MaxRatio times its quiet value, the API's memory must be below MaxBytes, and the
// attacker's connections within the bounds.
const (
	MaxRatio = 2.0
	MaxBytes = 512 << 20
)

// Ratio returns the median of the rounds' ratios.
func (r Result) Ratio() float64 {
	ratios := make([]float64, len(r.Rounds))
	for i, one := range r.Rounds {
		ratios[i] = one.Ratio()
	}
	slices.Sort(ratios)
	if n := len(ratios); n%2 == 0 {
		return (ratios[n/2-1] + ratios[n/2]) / 2
	}
	return ratios[len(ratios)/2]
}

// Check returns which goals were missed.
func (r Result) Check() error {
	var missed []string
	if r.Ratio() > MaxRatio {
		missed = append(missed, fmt.Sprintf("the other tenant's p99 is %.2f times its quiet value, more than %g", r.Ratio(), MaxRatio))
	}
	if r.PeakBytes >= MaxBytes {
		missed = append(missed, fmt.Sprintf("the API had %d MB, not less than %d", r.PeakBytes>>20, MaxBytes>>20))
	}
	if r.Held > maxConnections {
		missed = append(missed, fmt.Sprintf("the attacker had %d connections open, more than %d", r.Held, maxConnections))
	}
	if r.Failed > 0 {
		missed = append(missed, fmt.Sprintf("%d requests of the other tenant failed", r.Failed))
	}
	if len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	return nil
}

// Run prepares the database, starts the API and measures.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	tenants, err := prepare(ctx, cfg.URL)
	if err != nil {
		return r, err
	}
	err = process.WithAPI(ctx, cfg.URL, func(api *process.API) error {
		neighbour := &worker{base: api.Base, token: tenants.neighbour}
		if err := neighbour.work(ctx, cfg.Quiet/4, nil); err != nil { // caches and connections
			return err
		}
		a, s := newAttack(api.Base, tenants, cfg), newSilence(api.Base, tenants.attacker)
		r.Beside = make(map[string]int)
		for range cfg.Rounds {
			if err := r.round(ctx, cfg, neighbour, a, s); err != nil {
				return err
			}
		}
		r.Sent, r.Slowest, r.Opened, r.Ended = a.sent, a.slowest, s.opened, s.ended
		_, highest, ok := process.Memory(api.Child.PID())
		if r.PeakBytes = int64(highest * (1 << 20)); !ok {
			return errors.New("the memory of the API is known on Linux only")
		}
		return nil
	}, limits()...)
	return r, err
}

// round measures one round.
func (r *Result) round(ctx context.Context, cfg Config, neighbour *worker, a *attack, s *silence) error {
	neighbour.reset()
	if err := neighbour.work(ctx, cfg.Quiet, nil); err != nil {
		return err
	}
	var one Round
	one.QuietP50, one.QuietP99 = neighbour.quantiles()
	neighbour.reset()
	a.log = nil
	began, over := time.Now(), make(chan struct{})
	attacking, stop := context.WithCancel(ctx)
	var held int
	var watched error
	var attackers sync.WaitGroup
	attackers.Go(func() { s.run(attacking, cfg.Silent, cfg.Rate) })
	attackers.Go(func() { held, watched = s.watch(attacking) })
	go func() { // waited for below
		defer close(over)
		least := time.NewTimer(cfg.Quiet)
		defer least.Stop()
		if cfg.Bodies > 0 {
			a.run(ctx, cfg.Bodies/cfg.Rounds)
		}
		select {
		case <-least.C:
		case <-ctx.Done():
		}
	}()
	err := neighbour.work(ctx, 0, over)
	<-over
	stop()
	attackers.Wait()
	r.Held, err = max(r.Held, held), errors.Join(err, watched)
	r.Took += time.Since(began)
	one.P50, one.P99 = neighbour.quantiles()
	r.Rounds = append(r.Rounds, one)
	r.Served, r.Failed = r.Served+len(neighbour.took), r.Failed+neighbour.failed
	for _, late := range neighbour.late(one.P99) {
		r.Late++
		for name := range a.during(late) {
			r.Beside[name]++
		}
	}
	return err
}

// quantile returns the value below which a part of sorted values is.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

// slower keeps the slowest requests.
func slower(all []Slow, next Slow) []Slow {
	const most = 5
	all = append(all, next)
	slices.SortFunc(all, func(a, b Slow) int { return int(b.Took - a.Took) })
	return all[:min(len(all), most)]
}
