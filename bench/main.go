// Command bench measures Countersign against the River library, each in the
// same run, in turn, on the same PostgreSQL, and prints the ratio: the median
// of several rounds, and the worst one. Absolute figures depend on the
// machine; the ratio of two figures measured seconds apart can be compared
// across machines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/config"
)

const usage = `bench measures Countersign against the River library in the same run.

  go run -C bench . [-run burn,once,sustained,submit,processes,latency] [-n 200000] [-rounds 5]

  burn        burn-down of -n submitted envelopes (claimed, checked, executed by
              a no-op tool, settled with its attempt recorded) against River burning
              down as many no-op jobs, set up as River's own bench does
  once        the same with a tool of class once, which is marked before it is
              sent: a guarantee that River has no counterpart of
  sustained   submitting while working, for -for
  submit      batches of 500 against InsertManyFast of as many rows
  cpu         what submitting and working off -n actions costs each: processor time
              of Go and of PostgreSQL, WAL, row versions and allocations, against
              River or, with -against, another build, in -pairs alternating pairs;
              medians, and the ratio with an interval of 95 % (not among the default
              runs; take -n 50000)
  processes   burn-down by one and by four worker processes
  latency     submit to the tool's being called, idle fleet, over HTTP MCP
  sql         envelopes proposed in SQL, until they are actions, against batches of
              500 over HTTP; and commit to the tool's being called, idle worker
              (not among the default runs)
  past        burn-down and pages of the API with -past ended envelopes, a million of
              100 tenants that wait in 1,000 buckets, 10,000 tools and 10,000 items of
              the inbox, against an almost empty database (not among the default
              runs: it takes minutes and some GB)
  bloat       what -n envelopes leave behind that are burned down in ten bursts
              (not among the default runs; take -n 1000000)
  exhausted   burn-down beside one bucket with -crowd due envelopes that may not
              run, because of a pause, its rate, its calendar or its ceiling,
              against none (not among the default runs)
  tenants     what each of ten tenants gets whose backlogs are as 1 to 1000,
              while all have work (not among the default runs)
  limited     burn-down through buckets with limits too wide to matter, against
              buckets without (not among the default runs)
  slowtool    submit to the tool's being called, of another tenant and of another
              source, beside thousands of due calls that take 30 s each, against the
              same without them (not among the default runs)
  waited      approve --wait, without other work and beside 20,000 due calls of the
              same source in the same bucket that take 300 ms each (not among the
              default runs)
  mail        messages a second that a core understands, against what go-message
              alone needs to decode them (not among the default runs; needs no
              server)
  triage      what the command triage and PostgreSQL need for a message, over a
              generated Maildir of -n messages, and the memory of triage after
              10,000 messages and at the end; then every message must be decided
              once (not among the default runs; take -n 100000)
  triagekills a backfill of at most 5,000 messages, from a Maildir and from
              Dovecot, whose process is killed ten times and loses its connections
              twice: it fails unless every message was decided once and proposed
              once; and another that is paused ten times, with the time that a
              pause needs to take effect, at most 5 s (not among the default runs)
  models      how long 500 messages take of which a model server with four slots is
              asked what is left open, with fixed times a tier and with times by
              tokens; 100 that come while triage runs, and an urgent one behind
              500 others; the processor time of triage for models (not among the
              default runs; the model server is a fake)
  hostile     what one tenant notices of another that attacks the API with
              -bodies generated bodies, those that are known to be costly, and
              -silent connections on which it sends or reads little, in -rounds of a
              quiet time and an attack; it fails if the p99 is, in the median, more
              than twice its quiet value, if the API has 512 MB or more, or if the
              attacker has more connections open than it may (not among the default
              runs; Linux only)
  http        single requests as agents make them: proposals over REST, against a
              bare handler with one INSERT, and calls through /mcp, against the same
              calls straight to the tool's server (not among the default runs)
  search      searches over the words of a million actions, through the API, and
              submitting while a worker indexes, against submitting without (not among
              the default runs; it takes minutes)
  idle        processor time and memory of the commands api, worker and triage without
              work, and of River's client, for -for (not among the default runs; take
              -for 1m)
  page        the operator's page in Chromium, with 1,000 actions that wait and 10,000
              that have ended: its sizes, when the inbox is painted, from a key to
              what comes of it with a processor four times slower, and what many
              events do, each beside its aim (not among the default runs; needs Node,
              web/node_modules and Chromium)

It starts a private PostgreSQL, fsync on, unless -url names a server's
superuser URL. Both sides collect garbage as the API and the worker do. Each figure is also a line of JSON in bench/results/bench.jsonl.

`

type options struct {
	run     []string
	n       int
	rounds  int
	pairs   int
	kind    string
	only    string
	against string
	most    float64
	length  time.Duration
	past    int
	crowd   int
	bodies  int
	silent  int
	rate    int
	rules   bool
	url     string
	results string
}

func main() {
	config.CollectSeldom(os.Environ())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if count := os.Getenv(sampleEnv); count != "" {
		return runSample(ctx, os.Getenv(workerEnv), os.Getenv(urlEnv), count)
	}
	if kind := os.Getenv(workerEnv); kind != "" {
		return runWorker(ctx, kind, os.Getenv(urlEnv))
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	srv := &server{}
	if !slices.Equal(o.run, []string{"mail"}) {
		if srv, err = openServer(ctx, o.url); err != nil {
			return err
		}
		defer srv.close()
	}
	rep := newReport(o.results, srv)
	for _, name := range o.run {
		if err := errors.Join(measures()[name](ctx, &suite{o, srv, rep}), rep.err); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// measure is a benchmark.
type measure func(ctx context.Context, s *suite) error

func measures() map[string]measure {
	return map[string]measure{
		"burn": measureBurn, "once": measureOnce, "sustained": measureSustained, "submit": measureSubmit,
		"processes": measureProcesses, "latency": measureLatency, "past": measurePast, "bloat": measureBloat,
		"exhausted": measureExhausted, "tenants": measureTenants, "limited": measureLimited,
		"slowtool": measureSlowTool, "waited": measureWaited, "hostile": measureHostile, "sql": measureSQL,
		"mail": measureMail, "models": measureModels, "triage": measureTriage, "triagekills": measureTriageKills,
		"cpu": measureCPU, "page": measurePage, "http": measureHTTP, "search": measureSearch, "idle": measureIdle,
	}
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), usage)
		fs.PrintDefaults()
	}
	what := fs.String("run", "burn,once,sustained,submit,processes,latency", "what to measure, with commas between")
	fs.IntVar(&o.n, "n", 200_000, "envelopes and jobs of a burn-down")
	fs.IntVar(&o.rounds, "rounds", 5, "rounds, each of the peer and then of ours")
	fs.StringVar(&o.only, "only", "", "`parts` of the run http, with commas between: proposals, waits, decisions, calls, sessions, reads, idle; all by default")
	fs.IntVar(&o.pairs, "pairs", 9, "pairs of the run cpu, 6 at least")
	fs.StringVar(&o.kind, "kind", "ours", "`kind` of action of the run cpu: ours, or ceiling (buckets with a ceiling too wide to matter) or once (class once), which are compared with ours")
	fs.StringVar(&o.against, "against", "", "`build` that the run cpu compares with instead of River: a revision of git, or a folder with a checkout")
	fs.Float64Var(&o.most, "most", 0, "`ratio` of processor time an action above which the run cpu fails; 0 never fails")
	fs.DurationVar(&o.length, "for", 15*time.Second, "how long a sustained run lasts")
	fs.IntVar(&o.past, "past", 10_000_000, "ended envelopes behind the run past")
	fs.IntVar(&o.crowd, "crowd", 1_000_000, "due envelopes of the bucket of the run exhausted")
	fs.IntVar(&o.bodies, "bodies", 10_000, "generated bodies of the run hostile; 0 sends none")
	fs.IntVar(&o.silent, "silent", 1000, "connections that the attacker of the run hostile keeps open and sends or reads little on")
	fs.IntVar(&o.rate, "rate", 100, "requests, and silent connections, a second that the attacker of the run hostile begins, at most")
	fs.BoolVar(&o.rules, "rules", false, "have policy look at the arguments of every envelope, by a rule in CEL")
	fs.StringVar(&o.url, "url", "", "superuser URL of a server to use instead of a private one")
	fs.StringVar(&o.results, "results", "results/bench.jsonl", "`file` that the lines of JSON are appended to")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.run = strings.Split(*what, ",")
	for _, name := range o.run {
		if measures()[name] == nil {
			return o, fmt.Errorf("-run %q: there is %s", name, strings.Join(slices.Sorted(maps.Keys(measures())), ", "))
		}
	}
	if !slices.Contains([]string{"ours", "ceiling", "once"}, o.kind) {
		return o, fmt.Errorf("-kind %q: there is ours, ceiling, once", o.kind)
	}
	if o.n < 1 || o.rounds < 1 || o.rate < 1 || o.pairs < minPairs {
		return o, fmt.Errorf("-n, -rounds and -rate must be at least 1, -pairs at least %d", minPairs)
	}
	return o, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
