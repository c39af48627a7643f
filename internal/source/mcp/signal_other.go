//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

// OwnGroup returns nil where there are no process groups.
func OwnGroup() *syscall.SysProcAttr { return nil }

// killGroup kills a child. Its descendants only get the end of their input.
func killGroup(p *os.Process) {
	_ = p.Kill() // fails if it has already ended
}

// terminateGroup kills, because nothing gentler is portable.
func terminateGroup(p *os.Process) { killGroup(p) }
