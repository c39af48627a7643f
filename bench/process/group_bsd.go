//go:build unix && !linux

package process

import "syscall"

// ownGroup puts a child out of reach of the terminal's signals. Should we be
// killed, the child sees it by the end of its input.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
