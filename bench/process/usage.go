package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory returns the resident memory of a process and its highest value, in
// megabytes. It returns false if the system does not report it.
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

// stat returns the fields of a process after its name; nil if it cannot be read.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// Parent returns the process id of the parent of a process; 0 if the system does
// not report it.
func Parent(pid int) int {
	fields := stat(pid)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// TreeTime returns the processor time of a process and its children, both ended
// and running ones.
func TreeTime(pid int) (used time.Duration) {
	// Fields of proc(5), the first two after the name being 3 and 4: 14 and 15 are
	// user and system time, 16 and 17 those of children that ended, 20 is the number
	// of threads.
	const own, ended, threads = 14 - 3, 16 - 3, 20 - 3
	add := func(pid int, children bool) {
		fields := stat(pid)
		if len(fields) <= threads {
			return
		}
		exact, ok := scheduled(pid)
		if ok = ok && fields[threads] == "1"; ok {
			used += exact
		} else {
			used += ticks(fields[own]) + ticks(fields[own+1])
		}
		if children {
			used += ticks(fields[ended]) + ticks(fields[ended+1])
		}
	}
	add(pid, true)
	all, _ := filepath.Glob("/proc/[0-9]*") // none without /proc
	for _, path := range all {
		if child, _ := strconv.Atoi(filepath.Base(path)); pid != 0 && Parent(child) == pid {
			add(child, false)
		}
	}
	return used
}

// ticks reads a time of /proc, which is in hundredths of a second.
func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64)
	return time.Duration(n) * (time.Second / 100)
}

// scheduled returns the processor time of the first thread of a process to the
// nanosecond. It reports false where the system does not count it.
func scheduled(pid int) (time.Duration, bool) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)) // empty without /proc
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err == nil && n > 0
}
