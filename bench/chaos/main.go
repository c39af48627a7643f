// Command chaos proves that an effect happens once, or that we say that we do
// not know: it sends envelopes to a server that counts, kills workers with
// SIGKILL and crashes the database meanwhile, and then holds what Countersign
// says against the server's own count. It refuses to prove anything about
// speed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const usage = `chaos kills workers and the database, and counts the effects.

usage: go run ./bench/chaos [flags]

Envelopes go to an MCP server that does nothing but count: its own process,
over streamable HTTP, up all the time. Some workers execute them, each its own
process; at each interval one of them is killed with SIGKILL and replaced.
While envelopes are still being submitted, PostgreSQL is crashed and restarted.
At the end the server's count is held against what Countersign says:

  once    a tool that acts on every call. Nothing may happen twice. What a
          killed worker had started ends unknown, which is at most its
          concurrency per kill; all else ends, and none is lost.
  keyed   a tool that acts once per idempotency key. All must end sent, and
          nothing may happen twice.

The program exits with 1 if a property does not hold, and names the envelopes;
with 2 for wrong usage, and with 3 if the trial could not be done.

flags:
`

const examples = `
examples:
  go run ./bench/chaos
  go run ./bench/chaos -n 1000 -class once -seed 7
  go run ./bench/chaos -url postgres://user:password@host:5432/empty_database
`

// The exit codes.
const (
	exitBroken = 1
	exitUsage  = 2
	exitFailed = 3
)

func main() {
	if code, ok := asChild(); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// workerSelf asks for workers that are this program.
const workerSelf = "self"

// options are what the flags say.
type options struct {
	plan    plan
	classes []envelope.Effect
	url     string
	out     string
	worker  string
	private embedded.Config
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{private: embedded.Config{Download: true}}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.plan.n, "n", 10_000, "envelopes per class")
	flags.IntVar(&o.plan.workers, "workers", 3, "worker processes")
	flags.IntVar(&o.plan.concurrency, "concurrency", 8, "calls that a worker has open at once")
	flags.DurationVar(&o.plan.killEvery, "kill-every", time.Second, "how often a worker is killed")
	flags.DurationVar(&o.plan.lease, "lease", 5*time.Second, "how long a claim holds; 30s in production, shorter here so that recovery shows")
	flags.DurationVar(&o.plan.over, "over", 15*time.Second, "how long submitting the second half takes; the first half is a backlog")
	flags.DurationVar(&o.plan.tally.Call, "call", 20*time.Millisecond, "shortest time that a call takes; the longest is four times as long")
	flags.Float64Var(&o.plan.tally.Busy, "busy", 0.02, "share of calls that the server turns away with 429")
	flags.IntVar(&o.plan.restarts, "restarts", 1, "how often PostgreSQL is crashed and restarted, two seconds apart")
	flags.Uint64Var(&o.plan.seed, "seed", 1, "which workers are killed")
	class := flags.String("class", "both", "effect class of the tool: once, keyed or both")
	flags.StringVar(&o.url, "url", "", "superuser's `URL` of an empty database to use; there is no restart then (default: a private server)")
	flags.StringVar(&o.worker, "worker", "", "`program` to run as the worker, or self for a short version of it in here (default: cmd/worker, built for this)")
	flags.StringVar(&o.out, "out", "bench/chaos.jsonl", "`file` that a JSON line per fault is appended to; empty for none")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		fmt.Fprint(stderr, examples)
	}
	if err := flags.Parse(args); err != nil {
		return o, err //nolint:wrapcheck // flag has printed it
	}
	switch *class {
	case "both":
		o.classes = []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed}
	case string(envelope.EffectOnce), string(envelope.EffectKeyed):
		o.classes = []envelope.Effect{envelope.Effect(*class)}
	}
	p := o.plan
	if len(o.classes) == 0 || flags.NArg() > 0 || p.n < 1 || p.workers < 1 || p.concurrency < 1 || p.killEvery <= 0 || p.restarts < 0 ||
		p.lease < time.Second || p.over < 0 || p.tally.Call <= 0 || p.tally.Busy < 0 || p.tally.Busy > 0.2 {
		fmt.Fprintln(stderr, "chaos: a flag is out of range (-lease is at least 1s, -busy at most 0.2); see chaos -help")
		return o, errors.New("out of range")
	}
	return o, nil
}

// run does what the arguments say and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	broken, err := o.try(ctx, stdout)
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

// database is the server under test.
type database struct {
	url     string
	version string
	restart func(ctx context.Context) error // nil if the server is not ours
}

// try runs the trials and reports whether a property is broken.
func (o options) try(ctx context.Context, stdout io.Writer) (broken bool, err error) {
	db := database{url: o.url}
	if o.url == "" {
		server, err := embedded.Start(ctx, o.private)
		if err != nil {
			return false, err //nolint:wrapcheck // it tells all there is to tell
		}
		defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
		db.url = server.URL()
		db.restart = func(ctx context.Context) error { return server.Restart(ctx, embedded.Immediate) }
	}
	if _, err := postgres.Migrate(ctx, db.url); err != nil {
		return false, err //nolint:wrapcheck // it tells all there is to tell
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: db.url, Name: "chaos"})
	if err != nil {
		return false, err //nolint:wrapcheck // it tells all there is to tell
	}
	defer pool.Close()
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&db.version); err != nil {
		return false, fmt.Errorf("ask for the server's version: %w", err)
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return false, err //nolint:wrapcheck // it names the folder
	}
	log, err := os.Create(filepath.Join(dir, "workers.log"))
	if err != nil {
		return false, err //nolint:wrapcheck // it names the file
	}
	defer func() {
		err = errors.Join(err, log.Close())
		if broken || err != nil && ctx.Err() == nil {
			fmt.Fprintln(stdout, "the workers' log is", log.Name())
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	fmt.Fprintf(stdout, "PostgreSQL %s, %s; leases of %s so that recovery shows (30s in production)\n", db.version, machine(), o.plan.lease)
	program := o.worker
	switch program {
	case "":
		if program, err = buildWorker(ctx, dir); err != nil {
			return false, err
		}
	case workerSelf:
		program = ""
	}
	return o.trials(ctx, trial{plan: o.plan, db: db, pool: pool, log: log, stdout: stdout, program: program})
}

func (o options) trials(ctx context.Context, like trial) (bool, error) {
	var all []outcome
	defer func() { // together, below all the lines of progress
		for _, result := range all {
			result.print(like.stdout)
		}
	}()
	for _, class := range o.classes {
		t := like
		t.class = class
		fmt.Fprintf(like.stdout, "\nclass %s\n", class)
		result, err := t.run(ctx)
		if err != nil {
			return false, fmt.Errorf("class %s: %w", class, err)
		}
		all = append(all, result)
		if o.out != "" {
			if err := appendRecords(o.out, result.records(versions(like.db.version))); err != nil {
				return false, err
			}
		}
	}
	return slices.ContainsFunc(all, outcome.broken), nil
}
