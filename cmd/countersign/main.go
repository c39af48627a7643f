// Command countersign is the command line for people and agents: it proposes,
// decides, watches, works on dead letters, sets databases up, and runs the
// development environment.
package main

import (
	"os"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/config"
)

func main() {
	ctx := config.UntilSignal()
	environ := config.TakeEnviron()
	config.CollectSeldom(environ)
	os.Exit(cli.Run(ctx, os.Args[1:], command.System{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Program: os.Args[0], Getenv: config.Lookup(environ),
	}))
}
