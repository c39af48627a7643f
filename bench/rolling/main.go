// Command rolling replaces the processes of a running deployment one after
// another, as an upgrade in Kubernetes does, while agents propose actions, and
// counts the visible problems: requests that are refused, effects that are lost
// or happen twice, and calls whose outcome is unknown. Each property has a
// control, a run in which it must break. It does not measure speed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// The time that each step takes.
const (
	// lag is the time for which a load balancer still chooses a process that is
	// shutting down.
	lag = 3 * time.Second
	// warm is the duration of the load before the first process is replaced.
	warm = 2 * time.Second
	// shortest and longest bound an ordinary call of the tool; a long one takes
	// longCall, more than every grace here.
	shortest, longest, longCall = 100 * time.Millisecond, 500 * time.Millisecond, 12 * time.Second
)

// scenario is one run.
type scenario struct {
	name string
	// linger and grace are COUNTERSIGN_LINGER and COUNTERSIGN_GRACE; a process is
	// killed that has not ended kill after SIGTERM.
	linger, grace, kill time.Duration
	// broken reports whether a control broke as it must; nil for runs in which the
	// properties must hold.
	broken func(result) bool
}

func scenarios() []scenario {
	return []scenario{
		{name: "SIGTERM", linger: 5 * time.Second, grace: 6 * time.Second, kill: 30 * time.Second},
		{name: "SIGKILL after 7 s", linger: time.Minute, grace: time.Minute, kill: 7 * time.Second},
		{name: "control: no linger", linger: 0, grace: 6 * time.Second, kill: 30 * time.Second, broken: func(r result) bool { return r.Refused > 0 }},
		{name: "control: SIGKILL at once", linger: 5 * time.Second, grace: 6 * time.Second, kill: 0, broken: func(r result) bool { return r.ShortUnknown > 0 }},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 1 if a property does not hold, or a control does;
// 2 for wrong usage and 3 if a run could not be executed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("rolling", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rootfs := flags.String("rootfs", "../bin/rootfs", "the `folder` with the image's file system: go run -C deploy/images . -rootfs ../../bin/rootfs")
	plain := flags.Bool("plain", false, "plain processes instead of containers")
	only := flags.String("only", "", "run the scenarios whose names have this `text`")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() > 0 {
		return 2
	}
	failed, err := roll(ctx, *rootfs, *plain, *only, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "rolling:", err)
		return 3
	case failed:
		return 1
	}
	return 0
}

func roll(ctx context.Context, rootfs string, plain bool, only string, out io.Writer) (failed bool, err error) {
	server, err := embedded.Start(ctx, embedded.Config{Download: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	h, err := newHost(rootfs, plain)
	if err != nil {
		return false, err
	}
	defer h.close()
	fmt.Fprintf(out, "%s, PostgreSQL %s\n", h.describe(), server.Version())
	if err := h.migrate(ctx, server.URL()); err != nil {
		return false, err
	}
	fmt.Fprintln(out, header)
	for _, s := range scenarios() {
		if !strings.Contains(s.name, only) {
			continue
		}
		r, err := s.run(ctx, h, server.URL())
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		conclusion := s.conclusion(r)
		failed = failed || conclusion != held && conclusion != broke
		fmt.Fprintln(out, r.row(s.name, conclusion))
		for _, line := range r.Examples {
			fmt.Fprintln(out, "    "+line)
		}
	}
	return failed, nil
}

// The conclusions with which a run passes.
const (
	held  = "holds"
	broke = "breaks, as it must"
)

// conclusion returns whether the properties hold or, for a control, whether they
// break.
func (s scenario) conclusion(r result) string {
	if s.broken != nil {
		if s.broken(r) {
			return broke
		}
		return "DOES NOT BREAK: the run proves nothing"
	}
	var wrong []string
	for what, n := range map[string]int{"refused": r.Refused, "lost": r.Lost, "doubled": r.Doubled, "unknown though short": r.ShortUnknown} {
		if n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", n, what))
		}
	}
	if r.Unknown == 0 {
		wrong = append(wrong, "no long call was cut off, so that nothing is shown of them")
	}
	if len(wrong) > 0 {
		return "BROKEN: " + strings.Join(wrong, ", ")
	}
	return held
}

// run rolls a deployment of two API processes and two workers.
func (s scenario) run(ctx context.Context, h *host, url string) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	t, err := startTool()
	if err != nil {
		return r, err
	}
	defer t.close()
	w, err := newTenant(ctx, url, t.url)
	if err != nil {
		return r, err
	}
	defer w.close()
	lb, err := newBalancer()
	if err != nil {
		return r, err
	}
	defer lb.close()
	d := &deployment{host: h, scenario: s, url: url, balancer: lb}
	defer d.stop()
	if err := d.start(ctx); err != nil {
		return r, err
	}
	load := newLoad(lb.address(), w.token)
	load.start(ctx)
	err = errors.Join(d.replaceAll(ctx), load.stop())
	if err != nil {
		return r, err
	}
	if err := w.settled(ctx); err != nil {
		return r, err
	}
	stored, err := w.read(ctx)
	if err != nil {
		return r, err
	}
	return compare(load, t, stored, d.took), nil
}
