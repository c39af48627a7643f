package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/process"
)

// A child of this program reads its role from the environment: not from the
// command line, since the configuration holds the database's password.
const (
	roleEnv   = "CHAOS_ROLE"
	configEnv = "CHAOS_CONFIG"

	roleCounter = "counter"
	roleWorker  = "worker"
)

// runRole runs the role of this process, if it is a child, and reports whether
// it is one.
func runRole() (code int, ok bool) {
	role := os.Getenv(roleEnv)
	if role == "" {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process, at the latest
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the parent's end
		os.Exit(1)
	}()
	var err error
	switch config := []byte(os.Getenv(configEnv)); role {
	case roleCounter:
		var cfg counting.Config
		if err = json.Unmarshal(config, &cfg); err == nil {
			err = counting.Serve(ctx, cfg, os.Stdout)
		}
	case roleWorker:
		var cfg workerConfig
		if err = json.Unmarshal(config, &cfg); err == nil {
			err = work(ctx, cfg, os.Stderr)
		}
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos %s: %v\n", role, err)
		return 1, true
	}
	return 0, true
}

// startRole starts this program as a child. What it prints goes to stdout and
// stderr, which may be nil.
func startRole(role string, config any, stdout, stderr io.Writer) (*process.Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return process.Start(program, []string{roleEnv + "=" + role, configEnv + "=" + string(text)}, stdout, stderr)
}
