package database

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// smallDisk mounts a file system of a size on a new folder, until release is
// called.
func smallDisk(size int) (dir string, release func() error, err error) {
	if dir, err = os.MkdirTemp("", "chaos-disk-"); err != nil {
		return "", nil, err
	}
	options := fmt.Sprintf("size=%d,mode=0755", size)
	if err := syscall.Mount("chaos", dir, "tmpfs", 0, options); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mount a tmpfs: %w", err), os.Remove(dir))
	}
	return dir, func() error {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		return os.Remove(dir)
	}, nil
}

// DiskUnavailable returns why there can be no small disk; empty if there can.
func DiskUnavailable() string {
	_, release, err := smallDisk(1 << 20)
	if err == nil {
		err = release()
	}
	if err != nil {
		return "it needs a disk that may be filled up: " + err.Error()
	}
	return ""
}
