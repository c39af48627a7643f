package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// workerSelf selects the worker in this program.
const workerSelf = "self"

// options are the values of the flags.
type options struct {
	plan    plan
	faults  []fault
	list    bool
	url     string
	out     string
	worker  string
	private embedded.Config
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{private: embedded.Config{Download: true}}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	names := flags.String("fault", "all", "`names` of the faults, with commas between, or all; see -list")
	flags.BoolVar(&o.list, "list", false, "list the faults and end")
	flags.IntVar(&o.plan.n, "n", 0, "actions per class (default: see -list)")
	flags.IntVar(&o.plan.workers, "workers", 3, "worker processes")
	flags.IntVar(&o.plan.concurrency, "concurrency", 8, "calls that a worker makes at once")
	flags.DurationVar(&o.plan.killEvery, "kill-every", time.Second, "how often fault kill kills a worker")
	flags.DurationVar(&o.plan.lease, "lease", 5*time.Second, "lease of a claim; 30s in production, shorter here so that recovery shows")
	flags.DurationVar(&o.plan.over, "over", 0, "how long submitting the second half takes; the first half is a backlog (default: what the fault needs)")
	flags.DurationVar(&o.plan.server.Call, "call", 20*time.Millisecond, "shortest time that a call takes; the longest is four times as long")
	flags.Float64Var(&o.plan.server.Busy, "busy", 0.02, "share of calls that the server rejects with 429, whatever else happens")
	flags.IntVar(&o.plan.restarts, "restarts", 1, "how often fault kill also crashes and restarts PostgreSQL, two seconds apart")
	flags.Uint64Var(&o.plan.seed, "seed", 1, "which workers are hit")
	class := flags.String("class", "both", "effect class of the tool: once, keyed or both")
	flags.StringVar(&o.url, "url", "", "superuser's `URL` of an empty database to use; it is neither restarted nor filled up (default: a private server)")
	flags.StringVar(&o.worker, "worker", "", "`program` to run as the worker, or self for a short version of it in here (default: cmd/worker, built for this)")
	flags.StringVar(&o.out, "out", "chaos.jsonl", "`file` that a JSON line per fault and class is appended to; empty for none")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		fmt.Fprint(stderr, examples)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch *class {
	case "both":
		o.plan.classes = []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed}
	case string(envelope.EffectOnce), string(envelope.EffectKeyed):
		o.plan.classes = []envelope.Effect{envelope.Effect(*class)}
	}
	var err error
	if o.faults, err = choose(*names); err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return o, err
	}
	p := o.plan
	if len(p.classes) == 0 || flags.NArg() > 0 || p.n < 0 || p.workers < 1 || p.concurrency < 1 || p.killEvery <= 0 || p.restarts < 0 ||
		p.lease < time.Second || p.over < 0 || p.server.Call <= 0 || p.server.Busy < 0 || p.server.Busy > 0.2 {
		fmt.Fprintln(stderr, "chaos: a flag is out of range (-lease is at least 1s, -busy at most 0.2); see chaos -help")
		return o, errors.New("out of range")
	}
	return o, nil
}
