//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// killGroup kills a child and its whole group. It ignores the error for a group
// that has already ended.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // see above
}

// terminateGroup asks a child and its whole group to exit.
func terminateGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM) // the caller watches whether it worked
}
