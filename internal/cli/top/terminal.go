package top

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal is a screen that can be drawn on.
type terminal struct {
	out io.Writer
	fd  int
}

// The sequences that every terminal of today knows.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearToEnd  = "\x1b[K"
)

// terminalOf returns the terminal that a writer writes to, if it does.
func terminalOf(out io.Writer) (terminal, bool) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return terminal{}, false
	}
	return terminal{out, int(file.Fd())}, true
}

// size returns the number of columns and lines, 80 by 24 where they are not
// known.
func (t terminal) size() (width, height int) {
	width, height, err := term.GetSize(t.fd)
	if err != nil || width == 0 || height < 2 {
		return 80, 24
	}
	return width, height
}

// enter switches to the alternate screen and calls quit when q or Ctrl-C is
// pressed. leave restores the screen and the mode of the terminal.
func (t terminal) enter(in io.Reader, quit func()) (leave func(), err error) {
	restore := func() {}
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fd := int(file.Fd())
		mode, err := term.MakeRaw(fd)
		if err != nil {
			return nil, fmt.Errorf("set the terminal up: %w", err)
		}
		restore = func() { _ = term.Restore(fd, mode) }
		go readKeys(file, quit) // ends with the process: a read of a terminal cannot be interrupted
	}
	if _, err := io.WriteString(t.out, enterScreen); err != nil {
		restore()
		return nil, fmt.Errorf("write the output: %w", err)
	}
	return func() {
		_, _ = io.WriteString(t.out, leaveScreen) // nobody is left to tell
		restore()
	}, nil
}

// readKeys calls quit when q or Ctrl-C is pressed, or when no key can be read
// any more: then there is no other way to quit.
func readKeys(in io.Reader, quit func()) {
	const ctrlC = "\x03"
	keys := make([]byte, 16)
	for {
		n, err := in.Read(keys)
		if err != nil || strings.ContainsAny(string(keys[:n]), "qQ"+ctrlC) {
			quit()
			return
		}
	}
}

// draw writes lines over those on the screen.
func (t terminal) draw(lines []string) error {
	text := cursorHome + strings.Join(lines, clearToEnd+"\r\n") + clearToEnd
	if _, err := io.WriteString(t.out, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
