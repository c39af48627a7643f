//go:build unix && !linux

package embedded

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes are those of a process in a group of its own. That it
// dies with us is the guard's work here.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// isPostmaster says whether the process is a PostgreSQL server. That it runs
// on other data cannot be seen here, and is taken for the same.
func isPostmaster(pid int, _ string) bool {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	return strings.HasPrefix(filepath.Base(strings.TrimSpace(string(out))), "postgres")
}
