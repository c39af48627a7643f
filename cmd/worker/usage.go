package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// The variables.
const (
	varDatabase    = "DATABASE_URL"
	varID          = "COUNTERSIGN_WORKER_ID"
	varConcurrency = "COUNTERSIGN_CONCURRENCY"
	varBatch       = "COUNTERSIGN_BATCH"
	varLease       = "COUNTERSIGN_LEASE"
	varGrace       = "COUNTERSIGN_GRACE"
	varPollOnly    = "COUNTERSIGN_POLL_ONLY"
	varPooled      = "COUNTERSIGN_DB_POOLED"
	varConns       = "COUNTERSIGN_DB_MAX_CONNS"
	varKey         = "COUNTERSIGN_SECRET_KEY"
	varStdio       = "COUNTERSIGN_STDIO_SOURCES"
	varLevel       = "COUNTERSIGN_LOG_LEVEL"
	varMetrics     = "COUNTERSIGN_METRICS_LISTEN"
	varOTLP        = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

const head = `worker is one process of Countersign's fleet: it claims envelopes that are due,
calls their tools, and commits what became of them. Run as many as you like,
anywhere that reaches the database.

usage: worker            (configured by the environment alone)

SIGTERM or SIGINT drains it: it claims nothing more, lets running calls end
within the grace, commits every outcome and gives back what was not started.
A second one ends it at once; what it held is looked at again when its leases
run out. It writes one line of JSON for each event to standard output, and
exits with 0 after a drain, 2 for a configuration that cannot be used and 1 if
it could not go on.

Variables:
`

const tail = `
Examples:
  DATABASE_URL=postgres://countersign@db/countersign worker
  DATABASE_URL=… COUNTERSIGN_METRICS_LISTEN=:9090 COUNTERSIGN_CONCURRENCY=400 worker
  DATABASE_URL=postgres://…@pgbouncer:6432/countersign COUNTERSIGN_DB_POOLED=true COUNTERSIGN_POLL_ONLY=true worker

Migrate the database first: countersign migrate
`

// variable is one that configures the process.
type variable struct{ name, otherwise, about string }

func variables() []variable {
	return []variable{
		{varDatabase, "required", "where the database is: postgres://user:password@host:5432/database"},
		{varID, "host-pid-random", "names the worker in the ledger and in logs"},
		{varConcurrency, "100", "how many calls may be open at once, 1 to 10000"},
		{varBatch, "500", "how many envelopes one claim takes at most, 1 to 5000; never more than calls may be open"},
		{varLease, "30s", "how long a claim holds without being renewed, 5s to 1h; how soon the work of a worker that died is taken up"},
		{varGrace, "20s", "how long running calls may go on after a stop, up to 1h; below the time after which your platform kills"},
		{varPollOnly, "false", "do without LISTEN, which a pooler in transaction mode does not pass on"},
		{varPooled, "false", "a pooler in transaction mode (PgBouncer) stands before the database"},
		{varConns, "20", "how many connections to the database, 4 to 1000"},
		{varKey, "none", "opens the credentials of sources: 32 bytes in base64, the same as the API's (openssl rand -base64 32)"},
		{varStdio, "false", "lets sources of transport stdio start their programs, as this process's user; whoever sets sources up can then run anything"},
		{varLevel, "info", "debug, info, warn or error"},
		{varMetrics, "none", "serves /metrics, /healthz and /readyz on this address, such as :9090"},
		{varOTLP, "none", "sends traces and metrics to this collector over OTLP/HTTP, such as http://collector:4318"},
	}
}

// usage shows what there is to configure.
func usage(w io.Writer) {
	fmt.Fprint(w, head)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range variables() {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", v.name, v.otherwise, v.about)
	}
	_ = table.Flush() // help that cannot be written has no reader
	fmt.Fprint(w, tail)
}

// workerID is a name that no other worker has.
func workerID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

// version is the build's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
