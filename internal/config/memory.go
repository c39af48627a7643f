package config

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// apiHeap is the size in bytes that the API's memory may have before it collects
// garbage more often than CollectSeldom asks for. Its live heap has a tenth of that.
const apiHeap = 360 << 20

// LimitHeap has garbage collected more often near nine tenths of the memory of the
// machine and its control groups, unless the environment sets GOMEMLIMIT.
func LimitHeap(environ []string) { limitHeap(environ, os.DirFS("/"), math.MaxInt64) }

// LimitAPIHeap is LimitHeap for a process whose requests allocate much at once: it has a
// limit of its own, where the machine allows that.
func LimitAPIHeap(environ []string) { limitHeap(environ, os.DirFS("/"), apiHeap) }

func limitHeap(environ []string, root fs.FS, most int64) {
	if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, "GOMEMLIMIT=") }) {
		debug.SetMemoryLimit(min(most, allowedMemory(root)/10*9))
	}
}

// allowedMemory returns the bytes of memory of the machine, or of the smallest control
// group of this process; the largest number if the system reports none.
func allowedMemory(root fs.FS) int64 {
	allowed := int64(math.MaxInt64)
	lower := func(text string, unit int64) {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 && n < allowed/unit {
			allowed = n * unit
		}
	}
	read := func(name string) string {
		text, _ := fs.ReadFile(root, name) // missing on other systems, and in other versions of control groups
		return string(text)
	}
	for line := range strings.Lines(read("proc/meminfo")) {
		if size, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			lower(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 1024)
		}
	}
	for line := range strings.Lines(read("proc/self/cgroup")) {
		// The fields are the hierarchy, its controllers (none in version 2) and the group.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		file := "memory.max"
		if fields[1] != "" {
			file = "memory.limit_in_bytes"
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			lower(read(path.Join("sys/fs/cgroup", fields[1], group, file)), 1)
			if group == "/" {
				break
			}
		}
	}
	return allowed
}
