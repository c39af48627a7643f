package embedded

import (
	"fmt"
	"os"
	"syscall"
)

// processAttributes are those of a process that dies with us: the kernel sends
// SIGQUIT, an immediate shutdown, when the thread that started it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}

// isPostmaster says whether the process is a server on that data, whose folder
// is then its working folder. A process that we may not look at is another
// user's, and so not ours.
func isPostmaster(pid int, dataDir string) bool {
	cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	data, err := os.Stat(dataDir)
	return err == nil && os.SameFile(cwd, data)
}
