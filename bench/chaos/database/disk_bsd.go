//go:build unix && !linux

package database

import "errors"

// DiskUnavailable returns why there can be no small disk.
func DiskUnavailable() string {
	return "it needs a disk that may be filled up, which is made on Linux only"
}

// smallDisk is not supported on this system.
func smallDisk(int) (dir string, release func() error, err error) {
	return "", nil, errors.New(DiskUnavailable())
}
