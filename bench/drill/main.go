// Command drill follows the runbook of docs/operations.md line by line, under load: it
// copies, restores, sets back and moves a database while workers send and agents propose,
// and a server outside counts the calls. It fails if a copy sends, or if an effect happens
// twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/internal/action/fence"
)

const usage = `drill executes the commands of the runbook under load, and counts the calls.

usage: scripts/drill.sh [flags]

Each kind of restore has a block in the section "Restore or move a database" of
docs/operations.md. Its first paragraph is executed while workers send and agents
propose, its second to restore, and then
the block "recover". For a move, the block "move" has the lines before and after. Then
the agents propose everything again.

The program exits with 1 if an effect happened twice, a copy sent something or an
action is lost; with 2 for wrong usage, and with 3 if a drill could not be executed.

flags:
`

// The exit codes.
const (
	exitBroken = 1
	exitUsage  = 2
	exitFailed = 3
)

// shown is the number of violations of a kind that are printed.
const shown = 5

// kind is a kind of restore. block is the name of its block in the runbook.
type kind struct {
	name, block string
	// reason is the reason for which the restored database is held.
	reason string
	// cluster reports whether the database is restored into an empty one of another
	// cluster, in place whether it is at its old address, sameServer whether at that
	// of the old server.
	cluster, inPlace, sameServer bool
	// stateFiles reports whether workers have state files, archive whether the WAL is archived.
	stateFiles, archive bool
	// planned reports whether workers are stopped before, so that nothing is lost.
	planned bool
}

func kinds() []kind {
	return []kind{
		{name: "dump, same cluster", block: "dump", reason: fence.ReasonCopy, sameServer: true},
		{name: "dump, another cluster", block: "dump", reason: fence.ReasonCopy, cluster: true},
		{name: "base backup started as a copy", block: "base backup", reason: fence.ReasonSetBack, stateFiles: true},
		{name: "point in time", block: "point in time", reason: fence.ReasonTimeline, archive: true},
		{name: "data folder set back", block: "snapshot", reason: fence.ReasonSetBack, stateFiles: true, inPlace: true},
		{name: "move", block: "dump", reason: fence.ReasonMoved, cluster: true, planned: true},
	}
}

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
	s := &suite{stdout: stdout}
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runbook := flags.String("runbook", "docs/operations.md", "`page` with the runbook")
	only := flags.String("kind", "", "`name` of the only kind to drill (default: all)")
	flags.StringVar(&s.dir, "dir", "", "empty `folder` to work in")
	flags.StringVar(&s.programs, "programs", "bin", "`folder` with countersign and worker")
	flags.StringVar(&s.postgres, "pg", "", "`folder` with PostgreSQL's server and client programs")
	flags.StringVar(&s.newPostgres, "new-pg", "", "`folder` with the server programs of the version to move to (default: as -pg)")
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || s.dir == "" || s.postgres == "" || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "drill: -dir and -pg are required; see drill -help")
		return exitUsage
	}
	all := kinds()
	if *only != "" {
		all = slices.DeleteFunc(all, func(k kind) bool { return k.name != *only })
	}
	if len(all) == 0 {
		fmt.Fprintf(stderr, "drill: no such kind %q\n", *only)
		return exitUsage
	}
	if s.newPostgres == "" {
		s.newPostgres = s.postgres
	}
	text, err := os.ReadFile(*runbook)
	if err == nil {
		s.blocks, err = parseRunbook(string(text))
	}
	broken := false
	if err == nil {
		broken, err = s.run(ctx, all)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "drill:", err)
		return exitFailed
	case broken:
		return exitBroken
	}
	return 0
}

// run drills the kinds and reports whether one is broken.
func (s *suite) run(ctx context.Context, all []kind) (broken bool, err error) {
	began := time.Now()
	if err := s.prepare(ctx); err != nil {
		return false, fmt.Errorf("prepare: %w", err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, bin := range []string{s.postgres, s.newPostgres} {
		version, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
		if err != nil {
			return false, err
		}
		fmt.Fprintf(s.stdout, "%s in %s\n", strings.TrimSpace(string(version)), bin)
	}
	for i, k := range all {
		if why := s.unavailable(k); why != "" {
			fmt.Fprintf(s.stdout, "skipped %s: %s\n", k.name, why)
			continue
		}
		started := time.Now()
		v, err := s.drill(ctx, k, (i+1)*numbers)
		if err != nil {
			return false, fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Fprintf(s.stdout, "%s: held (%s); %s; %.0f s\n", k.name, k.reason, v, time.Since(started).Seconds())
		for _, what := range v.broken[:min(len(v.broken), shown)] {
			fmt.Fprintf(s.stdout, "  BROKEN (%d): %s\n", len(v.broken), what)
		}
		broken = broken || len(v.broken) > 0
	}
	fmt.Fprintf(s.stdout, "%s in %.0f s\n", map[bool]string{true: "BROKEN", false: "nothing happened twice"}[broken], time.Since(began).Seconds())
	return broken, nil
}

// slug returns a name as one of a folder.
func (k kind) slug() string { return strings.NewReplacer(" ", "-", ",", "").Replace(k.name) }
