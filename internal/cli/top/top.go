// Package top has the command that shows the state of a tenant live, as a screen
// of panels.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// soonest is how often may be asked at most.
const soonest = 100 * time.Millisecond

// Command returns the command top.
func Command(a *command.App) *cobra.Command {
	var every time.Duration
	var once bool
	cmd := command.New(a, "top", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		if every < soonest {
			return command.Misuse("--every must be at least %s", soonest)
		}
		err := runTop(ctx, a, c, every, once)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // Ctrl-C is how it ends
		}
		return err
	})
	cmd.Flags().DurationVar(&every, "every", time.Second, "refresh `interval`")
	cmd.Flags().BoolVar(&once, "once", false, "print once and exit")
	return cmd
}

func runTop(ctx context.Context, a *command.App, c *client.Client, every time.Duration, once bool) error {
	show := func(o wire.Overview, _ error) error {
		return a.Print("%s\n\n", strings.Join(drawTop(o, c.String(), 80, 0, false), "\n"))
	}
	if a.JSON {
		show = func(o wire.Overview, _ error) error { return a.WriteJSON(o) }
	} else if screen, ok := terminalOf(a.Out); ok && !once {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		leave, err := screen.enter(a.In, func() { end(errQuit) })
		if err != nil {
			return err
		}
		defer leave()
		show = func(o wire.Overview, failure error) error {
			return screen.draw(o, c.String(), a.Getenv("NO_COLOR") == "", failure)
		}
	}
	err := follow(ctx, every, once, c.Overview, show)
	if errors.Is(context.Cause(ctx), errQuit) {
		return nil
	}
	return err
}

// errQuit is the error for the key that ends the program.
var errQuit = errors.New("quit")

// follow looks again and again. A look that fails ends it, unless an earlier
// one worked and the server may be back: then show is called with the error.
func follow(ctx context.Context, every time.Duration, once bool, look func(context.Context) (wire.Overview, error), show func(wire.Overview, error) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last wire.Overview
	for first := true; ; first = false {
		o, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			last = o
		case first || once || !passing(err):
			return err
		}
		if err := show(last, err); err != nil || once {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// passing reports whether a later refresh may succeed.
func passing(err error) bool {
	if _, away := errors.AsType[*client.UnreachableError](err); away {
		return true
	}
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Status >= 500
}

// terminal is a screen that can be drawn on.
type terminal struct {
	out io.Writer
	fd  int
}

// Escape sequences that every terminal supports.
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
			return nil, fmt.Errorf("set up the terminal: %w", err)
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

// draw redraws the screen. The last line shows keys, or an error.
func (t terminal) draw(o wire.Overview, where string, colour bool, failure error) error {
	across, height := t.size()
	lines := drawTop(o, where, across, height-1, colour)
	lines = append(lines, make([]string, height-1-len(lines))...)
	foot := line{{"q quits", toneFaint}}
	if failure != nil {
		foot = line{{"old: " + failure.Error(), toneAlarm}}
	}
	lines = append(lines, foot.text(across, colour))
	text := cursorHome + strings.Join(lines, clearToEnd+"\r\n") + clearToEnd
	if _, err := io.WriteString(t.out, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
