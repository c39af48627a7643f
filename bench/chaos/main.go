// Command chaos verifies that an effect happens once, or that its outcome is
// recorded as unknown: it sends actions to a server that counts, meanwhile
// injects a fault (into workers, the database, the network, the tool, the disk,
// the clock), and then compares Countersign's records with the server's own
// count. It does not measure speed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const usage = `chaos injects faults, and counts the effects.

usage: go run -C bench ./chaos [flags]

Actions go to an MCP server that does nothing but count: a process of its own,
over streamable HTTP, with a journal that survives it. Workers execute them, each
in a process of its own. Meanwhile one fault after the other is injected; see
chaos -list. Each fault has two tools, with one half of the actions each:

  once    acts on every call. Nothing may happen twice. What was in flight at the
          time of the fault may end unknown, never more than the fault can have
          hit; all else ends, and nothing is lost.
  keyed   acts once per idempotency key. All must end sent, and nothing may
          happen twice.

A fault without any sign of its effect proves nothing and fails the run. The
program exits with 1 if a property is violated, and names the actions; with 2 for
wrong usage, and with 3 if a run could not be executed. A fault that cannot be
injected here is left out, and the table says why.

flags:
`

const examples = `
examples:
  go run -C bench ./chaos
  go run -C bench ./chaos -list
  go run -C bench ./chaos -fault kill -n 10000
  go run -C bench ./chaos -fault db-cut,tool-dies -class once -seed 7
  go run -C bench ./chaos -fault kill -url postgres://user:password@host:5432/empty_database
`

// The exit codes.
const (
	exitBroken = 1
	exitUsage  = 2
	exitFailed = 3
)

func main() {
	if code, ok := counting.RunChild(); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case o.list:
		list(stdout)
		return 0
	}
	broken, err := o.runSuite(ctx, stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "chaos: interrupted")
		return exitFailed
	case err != nil:
		fmt.Fprintln(stderr, "chaos:", err)
		return exitFailed
	case broken:
		return exitBroken
	}
	return 0
}

// options are the values of the flags.
type options struct {
	plan    plan
	faults  []fault
	list    bool
	url     string
	out     string
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
	flags.StringVar(&o.out, "out", "results/chaos.jsonl", "`file` that a JSON line per fault and class is appended to; empty for none")
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
	o.faults, err = choose(*names)
	p := o.plan
	if err == nil && (len(p.classes) == 0 || flags.NArg() > 0 || p.n < 0 || p.workers < 1 || p.concurrency < 1 || p.killEvery <= 0 || p.restarts < 0 ||
		p.lease < 5*time.Second || p.over < 0 || p.server.Call <= 0 || p.server.Busy < 0 || p.server.Busy > 0.2) {
		err = errors.New("a flag is out of range (-lease is at least 5s, as of cmd/worker, -busy at most 0.2); see chaos -help")
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
	}
	return o, err
}
