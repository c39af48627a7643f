package config

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestAllowedMemory(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemFree: 1 kB\nMemTotal:       2048 kB\nMemAvailable: 1024 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"nothing is reported":         {nil, math.MaxInt64},
		"the machine has no groups":   {fstest.MapFS{"proc/meminfo": machine}, 2 << 20},
		"a group allows all":          {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 2 << 20},
		"a group allows more":         {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("9000000\n")}, 2 << 20},
		"a container's group":         {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1000000\n")}, 1_000_000},
		"a group of another name":     {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/kube/../pod\n"), "sys/fs/cgroup/memory.max": file("1000000\n")}, 1_000_000},
		"the lowest of nested groups": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("5\n"), "sys/fs/cgroup/a/b/memory.max": file("7\n")}, 5},
		"version 1": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("9:name=systemd:/\n4:memory:/x\n3:cpu:/y\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("1000000\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
			"sys/fs/cgroup/cpu/y/memory.limit_in_bytes": file("1\n"),
		}, 1_000_000},
	} {
		if got := allowedMemory(c.root); got != c.want {
			t.Errorf("%s: allowedMemory() = %d, want %d", name, got, c.want)
		}
	}
}

// TestTheLimitOfTheHeapFollowsTheMachine changes a setting of the process, as
// TestLimitHeap does.
func TestTheLimitOfTheHeapFollowsTheMachine(t *testing.T) {
	small := fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemTotal: 102400 kB\n")}}
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })

	limitHeap(nil, small, apiHeap)

	if got, want := debug.SetMemoryLimit(-1), int64(90<<20); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}
