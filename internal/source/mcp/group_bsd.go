//go:build unix && !linux

package mcp

import "syscall"

// OwnGroup puts a child into a process group of its own. If this process is
// killed, the child only gets the end of its input.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
