//go:build unix

package mbox

import (
	"io/fs"
	"syscall"
)

// inodeOf returns the inode, which distinguishes a file from another of the
// same name.
func inodeOf(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
