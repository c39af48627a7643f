package mcp

import "syscall"

// OwnGroup puts a child into a process group of its own and ties it to this
// process: if this process is killed, the kernel kills the child too.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
