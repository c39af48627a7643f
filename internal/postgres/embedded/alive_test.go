package embedded_test

import "syscall"

// alive says whether there is a process of that number.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
