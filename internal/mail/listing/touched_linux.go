package listing

import (
	"io/fs"
	"syscall"
)

// Touched returns when a file got its name, in nanoseconds: its change time,
// which a rename sets too.
func Touched(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return info.ModTime().UnixNano()
}
