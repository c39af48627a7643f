package dev

import "syscall"

// childAttributes are those of a process that Ctrl-C in the terminal does not
// reach, since we stop it in order, and that dies with us if we are killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
