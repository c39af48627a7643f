//go:build unix && !linux

package mcp

import "syscall"

// ownGroup puts a child into a process group of its own. Should this process
// be killed, the child has only the end of its input to go by.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
