//go:build unix && !linux

package main

import "errors"

// diskLacks says why there can be no small disk.
func diskLacks() string { return "it takes a disk that may be filled up, which is made on Linux only" }

// smallDisk is not supported on this system.
func smallDisk(int) (dir string, release func() error, err error) {
	return "", nil, errors.New(diskLacks())
}
