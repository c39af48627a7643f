package kubetest

import "syscall"

// dieWithParent has the kernel end a child when the test ends, however it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
