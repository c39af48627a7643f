package embedded

import (
	"path/filepath"
	"strconv"
	"strings"
)

// mark is what PostgreSQL tells about itself in postmaster.pid.
type mark struct {
	pid   int // 0 if it cannot be read
	ready bool
}

func (h *home) pidFile() string { return filepath.Join(h.dataDir(), "postmaster.pid") }

// parsePidFile reads a postmaster.pid, which may be half written: the process
// is on the first line and the status on the eighth.
func parsePidFile(text string) mark {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid < 0 {
		return mark{}
	}
	return mark{pid: pid, ready: len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"}
}
