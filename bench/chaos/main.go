// Command chaos verifies that an effect happens once, or that its outcome is
// recorded as unknown: it sends actions to a server that counts, meanwhile
// injects a fault (into workers, the database, the network, the tool, the disk,
// the clock), and then compares what Countersign recorded with the server's own
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
	if code, ok := runRole(); ok {
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
