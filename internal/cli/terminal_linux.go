package cli

import "golang.org/x/sys/unix"

// The requests that read and set a terminal's modes.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
