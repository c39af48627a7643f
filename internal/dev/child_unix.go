//go:build unix && !linux

package dev

import "syscall"

// childAttributes are those of a process that Ctrl-C in the terminal does not
// reach, since we stop it in order.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
