package listing

import (
	"io/fs"
	"syscall"
)

// Touched returns when a file came to its name, in nanoseconds: the change time
// of the file, which a rename sets too.
func Touched(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return info.ModTime().UnixNano()
}
