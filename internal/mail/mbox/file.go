// Package mbox reads mbox files: messages one after another, each after a line
// that begins with "From " (mboxrd and mboxo, which quote such body lines with
// ">"). A key is the offset of that line. There are no flags, because the
// headers in which programs keep them can be forged by a sender. The package
// never writes to a file.
package mbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	separator = "From "
	// firstWindow and window are the first and the largest number of bytes
	// searched at a time: most messages are small.
	firstWindow = 4 << 10
	window      = 64 << 10
	// checked is the number of bytes before an offset in the cursor's digest.
	checked = 256
	// maxLine is the longest separator line.
	maxLine = 512
)

// postmark matches a separator: after "From " it has a time and a year, unlike
// a sentence that begins with this word.
var postmark = regexp.MustCompile(`^From .*\d:\d\d(:\d\d)? (.* )?(19|20)\d\d`)

// file is an open mbox.
type file struct {
	*os.File
	size  int64
	inode uint64
	mod   time.Time
}

func openFile(root *os.Root, name string) (*file, error) {
	// root refuses a symbolic link out of the folder; a named pipe would block.
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, mailbox.ErrNoFolder
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open mbox: %w", err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open mbox: %w", err)
	}
	return &file{f, info.Size(), inodeOf(info), info.ModTime()}, nil
}

// part returns up to n bytes from an offset.
func (f *file) part(from, n int64) ([]byte, error) {
	if n = min(n, f.size-from); n <= 0 {
		return nil, nil
	}
	buffer := make([]byte, n)
	read, err := f.ReadAt(buffer, from)
	if errors.Is(err, io.EOF) {
		err = nil // truncated in the meantime
	}
	if err != nil {
		return nil, fmt.Errorf("read mbox: %w", err)
	}
	return buffer[:read], nil
}

// digest returns the digest over the bytes before an offset.
func (f *file) digest(offset int64) (string, error) {
	from := max(offset-checked, 0)
	before, err := f.part(from, offset-from)
	sum := sha256.Sum256(before)
	return hex.EncodeToString(sum[:]), err
}

// isStart reports whether there is a separator at an offset: at the beginning
// of the file or after an empty line.
func (f *file) isStart(offset int64) (bool, error) {
	line, err := f.part(offset, maxLine)
	if err != nil {
		return false, err
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	if !postmark.Match(line) {
		return false, nil
	}
	if offset == 0 {
		return true, nil
	}
	before, err := f.part(max(offset-3, 0), min(offset, 3))
	return bytes.HasSuffix(before, []byte("\n\n")) || bytes.Equal(before, []byte("\n\r\n")) || string(before) == "\n", err
}

// next returns the first start at or after an offset, or the size of the file.
func (f *file) next(offset int64) (int64, error) {
	for at, size := offset, int64(firstWindow); at < f.size; at, size = at+size, min(2*size, window) {
		// The overlap finds separators across the border of two windows.
		text, err := f.part(at, size+int64(len(separator)))
		if err != nil {
			return 0, err
		}
		for i := 0; ; i++ {
			found := bytes.Index(text[i:], []byte(separator))
			if found < 0 {
				break
			}
			i += found
			if ok, err := f.isStart(at + int64(i)); ok || err != nil {
				return at + int64(i), err
			}
		}
	}
	return f.size, nil
}

// previous returns the last start before an offset, or -1.
func (f *file) previous(offset int64) (int64, error) {
	for end, size := offset, int64(firstWindow); end > 0; end, size = end-size, min(2*size, window) {
		from := max(end-size, 0)
		text, err := f.part(from, min(end-from+int64(len(separator)), offset-from))
		if err != nil {
			return 0, err
		}
		for {
			found := bytes.LastIndex(text, []byte(separator))
			if found < 0 {
				break
			}
			if ok, err := f.isStart(from + int64(found)); ok || err != nil {
				return from + int64(found), err
			}
			text = text[:found+len(separator)-1]
		}
	}
	return -1, nil
}

// item returns the message between two offsets.
func (f *file) item(folder string, from, to int64) (mailbox.Item, error) {
	line, err := f.part(from, maxLine)
	if err != nil {
		return mailbox.Item{}, err
	}
	first, _, _ := strings.Cut(string(line), "\n")
	received := received(strings.TrimRight(first, "\r"))
	if received.IsZero() {
		received = f.mod.UTC()
	}
	return mailbox.Item{
		Location: mailbox.Location{Folder: folder, Key: fmt.Sprint(from)},
		Received: received, Size: max(to-from-int64(len(first))-1, 0),
	}, nil
}

// received returns the time of a separator line: the asctime at its end, with
// or without a zone.
func received(line string) time.Time {
	fields := strings.Fields(line)
	for _, n := range []int{5, 6} {
		if len(fields) <= n {
			continue
		}
		text := strings.Join(fields[len(fields)-n:], " ")
		for _, layout := range []string{"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04 2006", "Mon Jan 2 15:04:05 2006 -0700", "Mon Jan 2 15:04:05 MST 2006"} {
			if at, err := time.Parse(layout, text); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// content returns the original bytes of the message at an offset, unquoted.
func (f *file) content(from, maxSize int64) ([]byte, error) {
	if from >= f.size {
		return nil, mailbox.ErrGone
	}
	if ok, err := f.isStart(from); !ok || err != nil {
		return nil, orGone(err)
	}
	to, err := f.next(from + 1)
	if err != nil {
		return nil, err
	}
	if to-from > maxSize+maxLine {
		return nil, mailbox.ErrTooLarge
	}
	raw, err := f.part(from, to-from)
	if err != nil {
		return nil, err
	}
	_, raw, _ = bytes.Cut(raw, []byte("\n"))
	// The empty line before the next separator is not part of the message.
	if body, ok := bytes.CutSuffix(raw, []byte("\n")); ok && (bytes.HasSuffix(body, []byte("\n")) || bytes.HasSuffix(body, []byte("\n\r"))) {
		raw = bytes.TrimSuffix(body, []byte("\r"))
	}
	if int64(len(raw)) > maxSize {
		return nil, mailbox.ErrTooLarge
	}
	return unquote(raw), nil
}

func orGone(err error) error {
	if err == nil {
		return mailbox.ErrGone
	}
	return err
}

// unquote removes one ">" from each quoted separator.
func unquote(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for line := range bytes.Lines(raw) {
		if quoted := bytes.TrimLeft(line, ">"); len(quoted) < len(line) && bytes.HasPrefix(quoted, []byte(separator)) {
			line = line[1:]
		}
		out = append(out, line...)
	}
	return out
}
