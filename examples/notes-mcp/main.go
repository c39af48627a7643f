// Command notes-mcp is a small MCP server whose tools have visible effects:
// notes are files in one folder. It shows how Countersign handles tools that
// read, write, destroy, and fail at first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shutdownGrace is the time that running requests have when the server stops.
const shutdownGrace = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "notes-mcp:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends or, over stdio, until the input does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("notes-mcp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", "", "folder that the notes live in; made if it is missing (required)")
	addr := flags.String("http", "", "serve streamable HTTP on this address, port 0 for any; default is stdio")
	flaky := flags.Int("flaky", 1, "how many times notes.publish fails for each note before it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("-dir is required")
	}
	notes, err := openNotes(*dir, *flaky)
	if err != nil {
		return err
	}
	defer notes.root.Close()
	if *addr != "" {
		return serve(ctx, notes.server(), *addr, stdout)
	}
	if err := notes.server().Run(ctx, &mcp.StdioTransport{}); ctx.Err() == nil {
		return err
	}
	return nil
}

// serve prints the address that it listens on, as one line, and serves.
func serve(ctx context.Context, server *mcp.Server, addr string, stdout io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(stdout, "listening on http://%s/mcp\n", listener.Addr())

	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		err := web.Shutdown(ctx)
		if err != nil {
			err = web.Close()
		}
		closed <- err
	})
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}
