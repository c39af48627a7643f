package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine says in words what this runs on.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return text // not Linux
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return text + ", " + strings.TrimSpace(value)
		}
	}
	return text
}

// versions says what was put to the test.
func versions(postgres string) map[string]string {
	v := map[string]string{"go": runtime.Version(), "postgres": postgres}
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
		if dep.Path == "github.com/riverqueue/river" || dep.Path == "github.com/modelcontextprotocol/go-sdk" || dep.Path == "github.com/Shopify/toxiproxy/v2" {
			v[dep.Path] = dep.Version
		}
	}
	return v
}
