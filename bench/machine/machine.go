// Package machine describes the machine and the versions of a measurement, and
// stores its results.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Describe returns the platform, the number of processors and their model.
func Describe() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo") // empty without /proc
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

// Load returns the average number of running processes in the last one, five
// and fifteen minutes, or "unknown" in words.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], ", ")
	}
	return "unknown"
}

// Versions returns the versions of Go, of Countersign's commit and of some
// modules, by name; those that the program was built without are missing.
func Versions(modules ...string) map[string]string {
	v := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v["countersign"] = s.Value
		}
	}
	for _, dep := range info.Deps {
		for _, path := range modules {
			if dep.Path == path {
				v[path] = dep.Version
			}
		}
	}
	return v
}

// AppendJSON appends each of the records as a line of JSON to a file, created if
// it is missing, and its folder as well.
func AppendJSON[T any](path string, records ...T) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, r := range records {
		err = errors.Join(err, json.NewEncoder(file).Encode(r))
	}
	return errors.Join(err, file.Close())
}
