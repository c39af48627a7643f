package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
)

// fault is a kind of failure to inject, and which outcomes it allows.
type fault struct {
	name, about string
	// n is how many envelopes per class show it, over how long the second
	// half of them is submitted.
	n    int
	over time.Duration
	// line is where a proxy is put between two of the processes.
	line proxyPlace
	// tool, if set, changes how the tool behaves from the start.
	tool func(*serverConfig)
	// disk gives the database a small disk of its own.
	disk bool
	// skewed has workers whose clocks are minutes apart.
	skewed bool
	// ours says that it takes a database server which we may break, and
	// builds that it takes cmd/worker as built here.
	ours, builds bool

	// inject injects the failure, and returns when nothing fails any more.
	inject func(context.Context, *faultRun) error
	// wantSigns are the signs that the fault had an effect; each must be seen.
	wantSigns []string
	// codes are what a call of class once may end unknown by, and most is how
	// many may; see mayBeUnknown.
	codes []string
	most  func(evidence) int
}

// proxyPlace is where a proxy is put.
type proxyPlace string

// The places.
const (
	placeNone     proxyPlace = ""
	placeDatabase proxyPlace = "database"
	placeTool     proxyPlace = "tool"
)

// faults are all there are, in the order in which they are made.
func faults() []fault {
	all := []fault{killFault()}
	all = append(all, restartFaults()...)
	all = append(all, databaseNetworkFaults()...)
	all = append(all, toolNetworkFaults()...)
	all = append(all, toolFaults()...)
	return append(all, freezeFault(), freezeOpenFault(), diskFault(), skewFault())
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
			return nil, fmt.Errorf("there is no fault %q; see chaos -list", name)
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

// lacks says why a fault cannot be made with these options; empty if it can.
func (f fault) lacks(o options) string {
	switch {
	case f.ours && o.url != "":
		return "the database of -url is not ours to break"
	case f.builds && o.worker != "":
		return "it needs cmd/worker as built here, and -worker names another"
	case f.disk:
		return diskLacks()
	}
	return ""
}

// The bounds on what may end unknown.

// noneUnknown: the fault keeps nobody from knowing.
func noneUnknown(evidence) int { return 0 }

// perHit is what one worker can hold at each injection.
func perHit(e evidence) int { return e.injected() * e.plan.concurrency }

// perOutage is what all workers can hold at each injection.
func perOutage(e evidence) int { return e.injected() * e.plan.workers * e.plan.concurrency }

// perSpoiled is the number of faulty responses in the journal.
func perSpoiled(e evidence) int { return len(e.server.Spoiled) }

// lostCodes are those of a call whose connection went away.
func lostCodes() []string { return []string{source.CodeLost, source.CodeTimeout} }
