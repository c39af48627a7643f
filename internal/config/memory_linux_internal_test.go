package config

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnmapProgram is not parallel, since other tests map pages again.
func TestUnmapProgram(t *testing.T) {
	before := mappedFiles(t)

	unmapProgram()

	if after := mappedFiles(t); after >= before {
		t.Errorf("%d kB of files are mapped, of %d kB before", after, before)
	}
}

// TestUnmapProgramKeepsChangedPages has a page of the program changed, as the loader does,
// and then made read-only.
func TestUnmapProgramKeepsChangedPages(t *testing.T) {
	t.Parallel()
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	page, err := unix.Mmap(int(program.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(page) }()
	const changed = "filled in by the loader"
	copy(page, changed)
	if err := unix.Mprotect(page, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}

	unmapProgram()

	if got := string(page[:len(changed)]); got != changed {
		t.Errorf("the page begins with %q, want %q", got, changed)
	}
}

// mappedFiles returns the size of the mapped pages of files, in kB.
func mappedFiles(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, value, found := strings.Cut(string(text), "\nRssFile:")
	size, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(value, "kB", 2)[0]))
	if !found || err != nil {
		t.Fatalf("no size of mapped files in\n%s", text)
	}
	return size
}
