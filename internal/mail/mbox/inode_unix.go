//go:build unix

package mbox

import (
	"io/fs"
	"syscall"
)

// inodeOf tells a file from another one that took its name.
func inodeOf(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
