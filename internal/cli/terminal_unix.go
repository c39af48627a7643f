//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// terminalOf returns the terminal that a writer writes to, if it does.
func terminalOf(out io.Writer) (terminal, bool) {
	file, ok := out.(hasFile)
	if !ok {
		return terminal{}, false
	}
	fd := int(file.Fd()) // file descriptors are small
	_, err := unix.IoctlGetTermios(fd, getTermios)
	return terminal{out, fd}, err == nil
}

// size is how many columns and lines there are, 80 by 24 where nobody knows.
func (t terminal) size() (across, height int) {
	size, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row < 2 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// enter gives the terminal a screen of its own, and reads keys as they are
// pressed. The context ends when one asks for the end; leave puts everything
// back as it was, and waits until no key is read any more.
func (t terminal) enter(in io.Reader) (keys context.Context, leave func(), err error) {
	keys, quit := context.WithCancel(context.Background()) // no parent: the context ends with a key press
	reading, restore, err := rawKeys(in)
	if err != nil {
		quit()
		return nil, nil, err
	}
	if _, err := io.WriteString(t.out, enterScreen); err != nil {
		quit()
		restore()
		return nil, nil, fmt.Errorf("write the output: %w", err)
	}
	done := make(chan struct{})
	var reader sync.WaitGroup
	if reading != nil {
		reader.Go(func() {
			for !over(done) {
				if reading() {
					quit()
					return
				}
			}
		})
	}
	return keys, sync.OnceFunc(func() {
		close(done)
		reader.Wait()
		quit()
		_, _ = io.WriteString(t.out, leaveScreen) // there is nobody left to tell
		restore()
	}), nil
}

// over says whether a channel is closed.
func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// rawKeys has the terminal of standard input, if it is one, hand keys over at
// once and unseen; Ctrl-C is still a signal. The function that reads waits a
// tenth of a second at most, and says whether a key asked for the end.
func rawKeys(in io.Reader) (read func() bool, restore func(), err error) {
	file, ok := in.(hasFile)
	if !ok {
		return nil, func() {}, nil
	}
	fd := int(file.Fd()) // file descriptors are small
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, func() {}, nil // not a terminal: no keys to read
	}
	raw := *was
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 1
	if err := unix.IoctlSetTermios(fd, setTermios, &raw); err != nil {
		return nil, nil, fmt.Errorf("set the terminal up: %w", err)
	}
	read = func() bool {
		var key [16]byte
		n, err := unix.Read(fd, key[:])
		if err != nil {
			return err != unix.EINTR // EINTR is a plain errno
		}
		for _, k := range key[:n] {
			if k == 'q' || k == 'Q' {
				return true
			}
		}
		return false
	}
	return read, func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil
}
