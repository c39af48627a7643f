package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/bench/machine"
)

const riverModule = "github.com/riverqueue/river"

// report prints results and appends them to a file. It keeps the errors of that.
type report struct {
	err      error
	path     string
	machine  string
	versions string
}

// result is a line of the file.
type result struct {
	Name     string             `json:"name"`
	Ours     float64            `json:"ours"`
	Peer     float64            `json:"peer,omitzero"`
	Ratio    float64            `json:"ratio,omitzero"`
	Worst    float64            `json:"worst_ratio,omitzero"`
	Low      float64            `json:"low,omitzero"` // ends of the ratio's interval
	High     float64            `json:"high,omitzero"`
	Against  string             `json:"against,omitzero"`
	Aim      float64            `json:"aim,omitzero"`
	Unit     string             `json:"unit"`
	Rounds   int                `json:"rounds,omitzero"`
	Extra    map[string]float64 `json:"extra,omitempty"`
	Machine  string             `json:"machine"`
	Versions string             `json:"versions"`
	Time     time.Time          `json:"time"`
}

func newReport(path string, srv *server) *report {
	v := machine.Versions(riverModule)
	r := &report{
		path: path, machine: machine.Describe(),
		versions: fmt.Sprintf("PostgreSQL %s, %s, River %s", cmp.Or(srv.version, "none"), v["go"], cmp.Or(v[riverModule], "unknown")),
	}
	fmt.Printf("machine   %s\nversions  %s\n\n", r.machine, r.versions)
	return r
}

// pair reports rounds of River and of Countersign, measured in turn.
func (r *report) pair(name, unit string, ours, peer []float64, extra map[string]float64) {
	r.against("river", name, unit, ours, peer, extra)
}

// against reports rounds of another library and of Countersign, measured in turn.
func (r *report) against(library, name, unit string, ours, peer []float64, extra map[string]float64) {
	ratios := make([]float64, len(ours))
	worst := ours[0] / peer[0]
	for i := range ours {
		ratios[i] = ours[i] / peer[i]
		worst = min(worst, ratios[i])
	}
	res := result{
		Name: name, Ours: median(ours), Peer: median(peer), Ratio: median(ratios), Worst: worst, Unit: unit, Rounds: len(ours), Extra: extra,
	}
	fmt.Printf("%-28s ours %9.0f   %s %9.0f %s   ratio %.2f   worst round %.2f\n", name, res.Ours, library, res.Peer, unit, res.Ratio, res.Worst)
	r.write(res)
}

// single reports a figure that River has no counterpart of.
func (r *report) single(name, unit string, value float64, extra map[string]float64) {
	fmt.Printf("%-28s      %9.2f %s\n", name, value, unit)
	r.write(result{Name: name, Ours: value, Unit: unit, Extra: extra})
}

// aimed reports a figure with its target: the highest value allowed, or the
// lowest if it is a rate.
func (r *report) aimed(name, unit string, value, aim float64, extra map[string]float64) {
	verb := "met"
	if rate := strings.HasPrefix(unit, "/"); rate && value < aim || !rate && value > aim {
		verb = "missed"
	}
	fmt.Printf("%-28s      %9.2f %s   aim %g: %s\n", name, value, unit, aim, verb)
	r.write(result{Name: name, Ours: value, Aim: aim, Unit: unit, Extra: extra})
}

// quantiles reports the median and the 99th percentile of times in milliseconds.
func (r *report) quantiles(name string, took []float64) {
	p50, p99 := quantiles(took)
	r.single(name+", p50", "ms", p50, nil)
	r.single(name+", p99", "ms", p99, nil)
}

func (r *report) note(format string, args ...any) { fmt.Printf("    "+format+"\n", args...) }

func (r *report) write(res result) {
	res.Machine, res.Versions, res.Time = r.machine, r.versions, time.Now().UTC()
	r.err = errors.Join(r.err, machine.AppendJSON(r.path, res))
}
