//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

// ownGroup has nothing to set where there are no process groups.
func ownGroup() *syscall.SysProcAttr { return nil }

// killGroup kills a child; its descendants have the end of their input to go
// by.
func killGroup(p *os.Process) {
	_ = p.Kill() // one that is gone already is what was wanted
}

// terminateGroup kills, since nothing gentler exists everywhere.
func terminateGroup(p *os.Process) { killGroup(p) }
