// Command chaos proves that an effect happens once, or that we say that we do
// not know: it sends envelopes to a server that counts, breaks something on
// purpose meanwhile (workers, the database, the network, the tool, the disk,
// the clock), and then holds what Countersign says against the server's own
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

const usage = `chaos breaks things on purpose, and counts the effects.

usage: go run -C bench ./chaos [flags]

Envelopes go to an MCP server that does nothing but count: its own process,
over streamable HTTP, with a journal that survives it. Some workers execute
them, each its own process. Meanwhile one fault after the other is made; see
chaos -list. Of each fault's envelopes one half goes to either tool:

  once    acts on every call. Nothing may happen twice. What was going out when
          the fault struck may end unknown, never more than the fault can have
          hit; all else ends, and none is lost.
  keyed   acts once per idempotency key. All must end sent, and nothing may
          happen twice.

A fault that was not felt proves nothing and fails the run. The program exits
with 1 if a property does not hold, and names the envelopes; with 2 for wrong
usage, and with 3 if a run could not be done. What cannot be done here is
left out, and the table says why.

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
	if code, ok := asChild(); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does what the arguments say and returns the exit code.
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
