package main

import (
	"bytes"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
)

func TestMain(m *testing.M) {
	if code, ok := counting.RunChild(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestChaos runs two faults with few actions: killed workers with a crash of the
// database, and a tool that answers 503.
func TestChaos(t *testing.T) {
	t.Parallel()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse([]string{
		"-fault", "kill,tool-503", "-n", "500", "-kill-every", "500ms", "-over", "1s", "-call", "15ms", "-seed", "3",
		"-out", t.TempDir() + "/chaos.jsonl",
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	// The server crashes, but not the machine, so nothing has to reach the disk;
	// but committed data has to reach the operating system.
	o.private.Fast, o.private.Settings = true, map[string]string{"synchronous_commit": "on"}
	var out bytes.Buffer

	broken, err := o.runSuite(ctx, &out)

	if err != nil || broken {
		t.Errorf("runSuite() = %t, %v, want false and no error; it printed:\n%s", broken, err, out.String())
	}
	t.Log(out.String())
}
