//go:build unix

package mcp

import (
	"os"
	"syscall"
)

// killGroup kills a child and everything else in its group. A group that is
// gone already is what was wanted.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // see above
}

// terminateGroup asks a child and everything else in its group to leave.
func terminateGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM) // the caller watches whether it worked
}
