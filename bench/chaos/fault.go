package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/internal/source"
)

// fault is a kind of failure to inject, and which outcomes it allows.
type fault struct {
	name, about string
	// n is the number of actions per class, and over the time during which the
	// second half of them is submitted.
	n    int
	over time.Duration
	// proxy is where a proxy is put between two of the processes.
	proxy proxyPosition
	// tool is the tool's fault from the start, slow makes its calls that many
	// times as long.
	tool counting.Setting
	slow int
	// smallDisk gives the database a small disk of its own.
	smallDisk bool
	// standbys gives the database standbys.
	standbys replication
	// skewed starts workers whose clocks are minutes apart.
	skewed bool
	// loses means that the database loses commits, and that everything is proposed again:
	// an action whose call was made before may then be skipped.
	loses bool
	// ownServer means that it needs a database server which may be broken.
	ownServer bool

	// inject injects the failure, and returns when nothing fails any more.
	inject injector
	// signs are the signs that the fault had an effect; each must be seen.
	signs []string
	// codes are the codes with which a call of class once may end as unknown, and
	// most bounds their number; see mayBeUnknown.
	codes []string
	most  func(evidence) int
}

type injector func(context.Context, *faultRun) error

// proxyPosition is where a proxy is put: before one of the servers.
type proxyPosition string

const (
	noProxy        proxyPosition = ""
	beforeDatabase proxyPosition = "database"
	beforeTool     proxyPosition = "tool"
)

// replication is how commits reach standbys.
type replication string

const (
	noStandbys   replication = ""
	synchronous  replication = "synchronous"
	asynchronous replication = "asynchronous"
)

// faults returns all faults in the order in which they are injected.
func faults() []fault {
	return slices.Concat(databaseFaults(), networkFaults(), toolFaults(), hostFaults(), restoreFaults(), failoverFaults())
}

// choose finds faults by their names.
func choose(names string) ([]fault, error) {
	all := faults()
	if names == "all" {
		return all, nil
	}
	var chosen []fault
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown fault %q; see chaos -list", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// list prints the faults.
func list(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault\tenvelopes per class\twhat is broken")
	for _, f := range faults() {
		fmt.Fprintf(table, "%s\t%d\t%s\n", f.name, f.n, f.about)
	}
	_ = table.Flush() // a list that cannot be written has no reader
}

// unavailable returns why a fault cannot be injected, into the database at a URL
// if one is given; empty if it can.
func (f fault) unavailable(url string) string {
	switch {
	case f.ownServer && url != "":
		return "the database of -url is not ours to break"
	case f.smallDisk:
		return database.DiskUnavailable()
	case f.standbys != noStandbys:
		return database.ClusterUnavailable()
	}
	return ""
}

// The bounds on the number of actions that may end as unknown.

// noneUnknown is for faults that lose no outcome.
func noneUnknown(evidence) int { return 0 }

// perInjection bounds the calls that one worker can have in flight, over all
// injections.
func perInjection(e evidence) int { return len(e.injections) * e.plan.concurrency }

// perOutage bounds the calls that all workers can have in flight, over all
// injections.
func perOutage(e evidence) int { return perInjection(e) * e.plan.workers }

// perFaulty is the number of actions with faulty answers in the journal.
func perFaulty(e evidence) int { return len(e.server.Faulty) }

// lostCodes are the codes of a call whose connection was lost.
func lostCodes() []string { return []string{source.CodeLost, source.CodeTimeout} }
