// Command triage reads mail accounts, decides about each message once and
// proposes actions for it, until SIGTERM, or with --once until all mail is read.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/triage/process"
)

func main() {
	ctx := config.UntilSignal()
	os.Exit(run(ctx, os.Args[1:], config.TakeEnviron(), os.Stdout, os.Stderr))
}

// run works until ctx ends or, with --once, until all is read, and returns the
// exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	once := slices.Equal(args, []string{"--once"})
	if once {
		args = nil
	}
	var cfg config.Triage
	return config.Run(ctx, &cfg, args, environ, stdout, stderr, func() error { return work(ctx, cfg, once, environ, stdout) })
}

// work builds the process and runs it.
func work(ctx context.Context, cfg config.Triage, once bool, environ []string, out io.Writer) (err error) {
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: "countersign-triage", Level: cfg.LogLevel, Log: out, Endpoint: cfg.OTLP})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Flush(ctx)) }()
	tel.Log.InfoContext(ctx, "triage starting", slog.String("version", telemetry.Version()), slog.Any("config", cfg))
	of := process.From(cfg)
	of.Lookup, of.Meter, of.Tracer, of.Log = config.Lookup(environ), tel.Meter(), tel.Tracer(), tel.Log
	p, err := process.Open(ctx, of)
	if err != nil {
		return err
	}
	defer p.Close()
	if once {
		return p.Once(ctx)
	}
	return tel.RunWithProbes(ctx, cfg.MetricsListen, p.Ready, p.Run)
}
