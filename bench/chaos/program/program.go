// Package program builds the worker that is tested, with a clock that is right or
// wrong, and reads its log.
package program

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// SkewEnv is the variable with the clock skew of a worker that Build built as
// skewed.
const SkewEnv = "CHAOS_CLOCK_SKEW"

// Build builds cmd/worker into a folder and returns the program. If it is
// to be skewed, its time.Now adds the skew of the environment: one file of the
// standard library is replaced, for this build only. A preloaded library would
// have no effect, since Go programs read the time from the kernel's page and not
// through libc, and a time namespace does not change the wall clock.
func Build(ctx context.Context, dir string, skewed bool) (string, error) {
	program := filepath.Join(dir, fmt.Sprintf("worker-%t", skewed))
	args := []string{"build", "-ldflags=-w", "-o", program}
	if skewed {
		overlay, err := skewClock(ctx, dir)
		if err != nil {
			return "", fmt.Errorf("skew the clock: %w", err)
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/countersign-dev/countersign/cmd/worker")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build has it, so that little is compiled
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/worker: %w\n%s", err, out)
	}
	return program, nil
}

// skewClock writes the replaced file into a folder, and returns the overlay
// file for `go build`.
func skewClock(ctx context.Context, dir string) (overlay string, err error) {
	const before = "\tsec, nsec, mono := runtimeNow()\n"
	const after = before + "\tsec += chaosSkew\n"
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	skewed := strings.Replace(string(text), before, after, 1)
	if skewed == string(text) {
		return "", errors.New("time.Now of this version of Go has another form; adapt skewClock")
	}
	skewed = strings.Replace(skewed, "import (\n", "import (\n\t\"syscall\"\n", 1) + fmt.Sprintf(`
// chaosSkew is added to the wall clock, in seconds.
var chaosSkew = readChaosSkew()

func readChaosSkew() int64 {
	text, _ := syscall.Getenv(%q)
	skew, _ := ParseDuration(text)
	return int64(skew / Second)
}
`, SkewEnv)
	replacement, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	config, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	return overlay, errors.Join(err, os.WriteFile(replacement, []byte(skewed), 0o600), os.WriteFile(overlay, config, 0o600))
}

// Log is the file that all workers log to, in lines of JSON.
type Log struct {
	File *os.File
	from int64 // where the lines of this run begin
}

// Begin makes the log begin here for a run.
func (l *Log) Begin() error {
	info, err := l.File.Stat()
	if err == nil {
		l.from = info.Size()
	}
	return err
}

// Count counts the lines of the run with a message, from workers whose clocks
// are wrong by at least wrong, which is longer than the run. Lines other than
// JSON are skipped: an ending worker may print any.
func (l *Log) Count(msg string, wrong time.Duration) (int, error) {
	info, err := l.File.Stat()
	if err != nil {
		return 0, err
	}
	n := 0
	lines := bufio.NewScanner(io.NewSectionReader(l.File, l.from, info.Size()-l.from))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == msg && time.Since(line.Time).Abs() >= wrong {
			n++
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read the workers' log: %w", err)
	}
	return n, nil
}
