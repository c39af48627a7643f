package config

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram removes the pages of this program's file from the process. The
// kernel maps those that run again, in the time of a page fault without a read from
// disk; the others belong to the page cache, which it reclaims first. Code and
// constants alone are concerned, which nothing writes. It does what it can: where
// /proc is missing, nothing.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, _ := os.ReadFile("/proc/self/maps") // empty without /proc
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var rights string
		n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights)
		if n < 3 || strings.Contains(rights, "w") || !strings.HasSuffix(line, " "+program+"\n") {
			continue
		}
		// Without COLD, the kernel keeps pages that are unmapped soon after their use.
		for _, advice := range []uintptr{unix.MADV_COLD, unix.MADV_DONTNEED} {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, advice) // kernels before 5.4 do not know COLD
		}
	}
}
