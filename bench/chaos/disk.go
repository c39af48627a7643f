package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// diskSize is what the database has, in bytes: a fresh cluster takes some
	// 60 MB, and its log is kept to as much.
	diskSize = 256 << 20
	// fills is how often the disk is filled up, fullFor how long it is full.
	fills   = 2
	fullFor = 4 * time.Second
	// fillPause is the time before each.
	fillPause = 4 * time.Second
	// refill is how often what has become free is taken too.
	refill = 50 * time.Millisecond
	// upTimeout is how long the database has to answer before it is taken for
	// dead and started again, as a supervisor would do it.
	upTimeout = 5 * time.Second
)

// feltFull are statements that the database refused because its disk was full,
// feltAway looks at which it was not there, because its log had found no space.
const (
	feltFull = "statements refused for lack of space"
	feltAway = "polls without a database"
)

func diskFault() fault {
	return fault{
		name: "disk-full",
		about: fmt.Sprintf("PostgreSQL's disk (%d MB, a tmpfs) is full for %s, %d times; the second time its log needs space too, which it crashes of",
			diskSize>>20, fullFor, fills),
		n: 1500, over: 18 * time.Second, disk: true, ours: true,
		inject: fillDisk, wantSigns: []string{feltFull, feltAway}, codes: []string{workerLost}, most: perOutage,
	}
}

// fillDisk fills the database's disk up and frees it again.
func fillDisk(ctx context.Context, t *faultRun) error {
	for n := range fills {
		if !pause(ctx, fillPause) {
			return ctx.Err()
		}
		if err := t.during(byDisk, func() error { return t.fillOnce(ctx, n > 0) }); err != nil {
			return err
		}
	}
	return nil
}

// fillOnce fills the disk up for a while. With log, the database is asked to
// begin a new file of its log again and again.
func (t *faultRun) fillOnce(ctx context.Context, log bool) error {
	b, err := newFiller(filepath.Join(t.db.dir, "ballast"))
	if err != nil {
		return err
	}
	for end := time.Now().Add(fullFor); time.Now().Before(end); {
		if err := b.grow(); err != nil {
			return errors.Join(err, b.remove())
		}
		sign, err := t.store.wantsSpace(ctx, log)
		if err != nil {
			return errors.Join(err, b.remove())
		}
		t.addSign(sign, 1)
		if !pause(ctx, refill) {
			return errors.Join(ctx.Err(), b.remove())
		}
	}
	if err := b.remove(); err != nil {
		return err
	}
	return t.db.revive(ctx)
}

// filler is a file that takes all free space.
type filler struct{ file *os.File }

func newFiller(path string) (*filler, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &filler{file}, nil
}

// grow takes all that is free.
func (b *filler) grow() error {
	for _, piece := range []int{8 << 20, 4 << 10} {
		page := make([]byte, piece)
		for {
			_, err := b.file.Write(page)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *filler) remove() error {
	return errors.Join(b.file.Close(), os.Remove(b.file.Name()))
}
