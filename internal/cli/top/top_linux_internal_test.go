package top

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

// openTerminal makes a pseudo-terminal of 90 by 20: what a person sees, and
// what the program has.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	if err := unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 90, Row: 20}); err != nil {
		t.Fatal(err)
	}
	return person, program
}

// TestTopLeavesTheTerminalAsItWas ends it in both ways that there are.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		noColour string
		quit     func(person *os.File, interrupt func())
	}{
		"by q":      {"", func(person *os.File, _ func()) { _, _ = person.WriteString("xq") }},
		"by Ctrl-C": {"1", func(_ *os.File, interrupt func()) { interrupt() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, program := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var code int
			var errs bytes.Buffer
			var running sync.WaitGroup
			running.Go(func() {
				code = command.Execute(ctx, []string{"--url", overviewServer(t)}, command.System{
					In: program, Out: program, Err: &errs,
					Getenv: func(name string) string { return map[string]string{"NO_COLOR": tt.noColour}[name] },
				}, func(a *command.App) *cobra.Command { return Command(a) })
				_ = program.Close()
			})

			var seen strings.Builder
			pressed := false
			for buf := make([]byte, 4096); ; {
				n, err := person.Read(buf)
				seen.Write(buf[:n])
				if !pressed && strings.Contains(seen.String(), "q quits") {
					pressed = true
					tt.quit(person, interrupt)
				}
				if err != nil || strings.Contains(seen.String(), leaveScreen) {
					break
				}
			}
			running.Wait()

			if code != command.ExitOK || errs.Len() > 0 {
				t.Errorf("exit code %d: %s", code, errs.String())
			}
			text := seen.String()
			if !strings.Contains(text, enterScreen) || !strings.Contains(text, "WAITING FOR") || !strings.Contains(text, leaveScreen) {
				t.Errorf("the terminal saw %q", text)
			}
			if coloured := strings.Contains(text, "\x1b[1m"); coloured != (tt.noColour == "") {
				t.Errorf("coloured %t with NO_COLOR=%q", coloured, tt.noColour)
			}
			// The device is of another open file by now, as a shell's is.
			again, err := unix.IoctlGetTermios(int(person.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Lflag, again.Lflag); diff != "" {
				t.Errorf("local modes (-before +after):\n%s", diff)
			}
			if before.Cc != again.Cc {
				t.Errorf("control characters are %v, were %v", again.Cc, before.Cc)
			}
		})
	}
}
