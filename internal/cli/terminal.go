package cli

import (
	"fmt"
	"io"
	"strings"
)

// terminal is a screen that can be drawn on.
type terminal struct {
	out io.Writer
	fd  int
}

// hasFile is a file of the operating system's.
type hasFile interface{ Fd() uintptr }

// The sequences that every terminal of today knows.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toHome      = "\x1b[H"
	clearToEnd  = "\x1b[K"
)

// draw writes lines over what is there.
func (t terminal) draw(lines []string) error {
	var b strings.Builder
	b.WriteString(toHome)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clearToEnd)
	}
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
