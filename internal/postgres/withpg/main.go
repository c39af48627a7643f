// Command withpg runs another command with a private PostgreSQL server that
// ends with it.
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
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const usage = `withpg runs a command with a private PostgreSQL server.

usage: go run ./internal/postgres/withpg [flags] -- command [arguments]

The command finds a superuser's URL of an empty database in TEST_DATABASE_URL
and, without -fast, in DATABASE_URL too, unless that is set already. When the
command ends, so does the server, and all its data is gone. If
TEST_DATABASE_URL is set already, no server is started. With -tx, the command
finds a second server in TEST_TX_DATABASE_URL.

withpg exits with the command's own code; 128 + N if signal N ended it, 127 if
it could not be started, 2 for wrong usage and 1 if there is no server. (go run
turns all of them into 1; a built withpg does not.)

flags:
`

const examples = `
examples:
  go run ./internal/postgres/withpg -fast -- go test ./...
  go run ./internal/postgres/withpg -- go run ./cmd/countersign migrate
  go run ./internal/postgres/withpg -bin "$(scripts/postgres.sh 18 /tmp/pg18)" -fast -- go test ./...
`

// The exit codes of withpg itself.
const (
	exitNoServer   = 1
	exitUsage      = 2
	exitNotStarted = 127
	exitSignalled  = 128 // plus the signal's number
)

const (
	testURL = "TEST_DATABASE_URL"
	txURL   = "TEST_TX_DATABASE_URL"
	liveURL = "DATABASE_URL"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run runs the program and returns its exit code.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("withpg", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var cfg embedded.Config
	flags.StringVar(&cfg.Bin, "bin", "", "`folder` that holds initdb and postgres (default: the first that is found)")
	flags.BoolVar(&cfg.Fast, "fast", false, "turn fsync and its like off: for tests, whose data may be lost")
	flags.BoolVar(&cfg.Download, "download", false, "download PostgreSQL if none is found")
	second := flags.Bool("tx", false, "start a second server for tests in long transactions, which would delay the events of all others")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		fmt.Fprint(stderr, examples)
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() == 0:
		fmt.Fprintln(stderr, "withpg: no command; see withpg -help")
		return exitUsage
	}

	if cfg.Fast {
		cfg.Settings = embedded.ForTests()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if os.Getenv(testURL) != "" {
		return execute(flags.Args(), nil, signals, stderr)
	}
	code, err := runWith(cfg, *second, flags.Args(), signals, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "withpg:", err)
	}
	return code
}

// runWith runs the command while a server runs, or two of them.
func runWith(cfg embedded.Config, second bool, args []string, signals <-chan os.Signal, stderr io.Writer) (code int, err error) {
	names := []string{testURL}
	if second {
		names = append(names, txURL)
	}
	var env []string
	for _, name := range names {
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		server, startErr := embedded.Start(ctx, cfg)
		cancel()
		if startErr != nil {
			return exitNoServer, startErr
		}
		defer func() {
			if stopErr := server.Stop(context.Background()); stopErr != nil {
				code, err = max(code, exitNoServer), errors.Join(err, stopErr)
			}
		}()
		env = append(env, name+"="+server.URL())
		if name == testURL && !cfg.Fast && os.Getenv(liveURL) == "" {
			env = append(env, liveURL+"="+server.URL())
		}
	}
	return execute(args, env, signals, stderr), nil
}

// execute runs the command with more environment, forwards signals to it and
// returns its exit code.
func execute(args, env []string, signals <-chan os.Signal, stderr io.Writer) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(stderr, "withpg:", err)
		return exitNotStarted
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }() // received below
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGINT && onTerminal() {
				continue // Ctrl-C has reached the command already
			}
			_ = cmd.Process.Signal(sig) // it may have just ended
		case err := <-ended:
			return exitCode(cmd.ProcessState, err, stderr)
		}
	}
}

// onTerminal reports whether a terminal's Ctrl-C goes to this process group, and
// so to the command too.
func onTerminal() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(state *os.ProcessState, err error, stderr io.Writer) int {
	if state == nil {
		fmt.Fprintln(stderr, "withpg:", err)
		return exitNoServer
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return state.ExitCode()
}
