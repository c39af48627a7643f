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

// skewEnv tells a worker as built by buildSkewed by how many seconds its clock
// is ahead.
const skewEnv = "CHAOS_CLOCK_SKEW"

// feltSkew are workers whose clock was seen to be wrong.
const feltSkew = "wrong clocks"

// skewSeen is more than a run takes and less than every skew.
const skewSeen = 4 * time.Minute

// skewKillEvery is how often a worker is killed under skew, so that leases run
// out that others take over.
const skewKillEvery = 2 * time.Second

// skewOf is by how much the clock of a worker is ahead: minutes, to either
// side, and not at all in turn.
func skewOf(slot int) time.Duration {
	return []time.Duration{7 * time.Minute, -5 * time.Minute, 0}[slot%3]
}

func skewFault() fault {
	return fault{
		name: "clock-skew",
		about: fmt.Sprintf("the clocks of three workers are %s ahead, %s behind and right; one is killed every %s",
			skewOf(0), -skewOf(1), skewKillEvery),
		n: 1500, over: 12 * time.Second, skewed: true, builds: true,
		inject: func(ctx context.Context, t *faultRun) error {
			if err := t.killWorkers(ctx, skewKillEvery); err != nil {
				return err
			}
			wrong, err := t.log.wrongClocks(skewSeen)
			t.addSign(feltSkew, wrong)
			return err
		},
		wantSigns: []string{feltSkew, feltKills},
		codes:     []string{workerLost}, most: perHit,
	}
}

// buildSkewed builds cmd/worker as it is, but with a time.Now that adds what
// the environment says. Only the standard library's is replaced, for this
// build: a library that is preloaded would not do, since Go programs ask the
// kernel's page and not libc, and a time namespace leaves the wall clock as it
// is.
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
		return "", errors.New("skew the clock: time.Now of this Go is not the one that is known; see buildSkewed")
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
	return buildWorker(ctx, dir, "worker-skewed", "-overlay", file)
}
