package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory returns the resident memory of a process and the most that it has had, in
// megabytes. It reports false where the system does not say.
func Memory(pid int) (resident, highest float64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		switch name {
		case "VmRSS":
			resident = kilobytes / 1024
		case "VmHWM":
			highest = kilobytes / 1024
		}
	}
	return resident, highest, resident > 0
}

// stat returns the fields of a process behind its name; nil where there is none.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// Parent returns the process id of the parent of a process; 0 where the system does
// not say.
func Parent(pid int) int {
	fields := stat(pid)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// TreeTime returns the processor time that a process has used, with its children,
// those that have ended and those that run.
func TreeTime(pid int) (used time.Duration) {
	// Fields 14 to 17 of proc(5), the first two after the name being 3 and 4: user and
	// system time, and those of children that ended.
	const first, hertz = 11, 100
	add := func(fields []string, n int) {
		for i := first; i < first+n && i < len(fields); i++ {
			ticks, _ := strconv.ParseInt(fields[i], 10, 64)
			used += time.Duration(ticks) * time.Second / hertz
		}
	}
	add(stat(pid), 4)
	all, _ := filepath.Glob("/proc/[0-9]*") // none where there is no /proc
	for _, path := range all {
		if child, _ := strconv.Atoi(filepath.Base(path)); pid != 0 && Parent(child) == pid {
			add(stat(child), 2)
		}
	}
	return used
}
