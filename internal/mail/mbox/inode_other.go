//go:build !unix

package mbox

import "io/fs"

// inodeOf returns 0 where the system has no such number: then the digest alone
// tells whether a file is still the one that was read.
func inodeOf(fs.FileInfo) uint64 { return 0 }
