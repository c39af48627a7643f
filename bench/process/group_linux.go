package process

import "syscall"

// ownGroup puts a child out of reach of the terminal's signals and ties it to
// this process: however we end, the kernel kills it too.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
