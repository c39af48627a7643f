//go:build !linux

package listing

import "io/fs"

// Touched returns when a file was written, in nanoseconds. A file that is moved
// into the folder keeps this time, so a reader that began at the end of the
// folder does not report an older file that is moved there later.
func Touched(info fs.FileInfo) int64 { return info.ModTime().UnixNano() }
