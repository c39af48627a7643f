package embedded_test

import "syscall"

// alive reports whether there is a process of that number.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
