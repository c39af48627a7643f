package config

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestUnmapProgram is not parallel, since other tests map pages again.
func TestUnmapProgram(t *testing.T) {
	before := programMapped(t)

	unmapProgram()

	if after := programMapped(t); after > before/2 {
		t.Errorf("%d kB of the program are mapped, of %d kB before", after, before)
	}
}

// programMapped returns the size of the mapped pages of this program's file, in kB.
func programMapped(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "RssFile:"); ok {
			size, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return size
		}
	}
	t.Skip("the kernel does not report mapped pages of files")
	return 0
}
