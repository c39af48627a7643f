package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// skewEnv has by how many seconds the clock of a worker is ahead that
// buildSkewed built.
const skewEnv = "CHAOS_CLOCK_SKEW"

// skewOf returns how far the clock of the worker in a slot is ahead: minutes,
// behind or right in turn.
func skewOf(slot int) time.Duration {
	return []time.Duration{7 * time.Minute, -5 * time.Minute, 0}[slot%3]
}

// buildSkewed builds cmd/worker with a time.Now that adds the skew of the
// environment. It replaces one file of the standard library, for this build
// only: a preloaded library would have no effect, since Go programs read the
// time from the kernel's page and not through libc, and a time namespace does
// not change the wall clock.
func buildSkewed(ctx context.Context, dir string) (string, error) {
	const before = "\tsec, nsec, mono := runtimeNow()\n"
	const after = before + "\tsec += chaosSkew\n"
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("skew the clock: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("skew the clock: %w", err)
	}
	skewed := strings.Replace(string(text), before, after, 1)
	if skewed == string(text) {
		return "", errors.New("skew the clock: time.Now of this version of Go has another form; adapt buildSkewed")
	}
	skewed += fmt.Sprintf(`
// chaosSkew is added to the wall clock, in seconds.
var chaosSkew = readChaosSkew()

func readChaosSkew() int64 {
	text, _ := syscall.Getenv(%q)
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	var n int64
	for _, digit := range []byte(text) {
		n = 10*n + int64(digit-'0')
	}
	if negative {
		return -n
	}
	return n
}
`, skewEnv)
	skewed = strings.Replace(skewed, "import (\n", "import (\n\t\"syscall\"\n", 1)
	replacement := filepath.Join(dir, "time.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", fmt.Errorf("skew the clock: %w", err)
	}
	file := filepath.Join(dir, "overlay.json")
	err = errors.Join(os.WriteFile(replacement, []byte(skewed), 0o600), os.WriteFile(file, overlay, 0o600))
	if err != nil {
		return "", fmt.Errorf("skew the clock: %w", err)
	}
	return build(ctx, filepath.Join(dir, "worker-skewed"), "-overlay", file)
}
