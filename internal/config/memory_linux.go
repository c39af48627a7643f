package config

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram removes the pages of this program's file from the process: code and
// constants. The kernel maps a page again when it is used, usually without reading it
// from the disk. A mapping with pages that differ from the file is left alone: those
// pages exist nowhere else, such as addresses that the loader of a position-independent
// program has filled in, and a debugger's breakpoints. Without /proc nothing happens.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, _ := os.ReadFile("/proc/self/smaps") // empty without /proc
	type span struct{ from, to uintptr }
	var last span
	var unchanged []span
	for line := range strings.Lines(string(mappings)) {
		var next span
		var rights string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &next.from, &next.to, &rights); n == 3 {
			if last = next; strings.Contains(rights, "w") || !strings.HasSuffix(line, " "+program+"\n") {
				last = span{}
			}
			continue
		}
		if name, value, _ := strings.Cut(line, ":"); name == "Anonymous" && strings.TrimSpace(value) == "0 kB" && last != (span{}) {
			unchanged = append(unchanged, last)
		}
	}
	for _, s := range unchanged {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED) // fails for locked pages alone
	}
}
