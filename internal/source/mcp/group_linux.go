package mcp

import "syscall"

// ownGroup puts a child into a process group of its own and ties it to this
// process: should we be killed, the kernel kills it too.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
