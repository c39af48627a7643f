// Package mbox reads files in which messages stand one behind the other, each
// after a line that begins with "From " (mboxrd and mboxo: body lines that
// begin so are quoted by ">"). A key is the offset of that line. There are no
// flags: the headers in which programs keep them are text that a sender can
// write too. A file is never written to.
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
	// firstWindow and window are how much of a file is searched at a time, growing
	// from the one to the other: most messages are small.
	firstWindow = 4 << 10
	window      = 64 << 10
	// checked is how many bytes before an offset the cursor's digest is over.
	checked = 256
	// maxLine is the longest separator line.
	maxLine = 512
)

// postmark is what follows "From " in every separator: a time and a year. A
// sentence that begins with this word has no such thing.
var postmark = regexp.MustCompile(`^From .*\d:\d\d(:\d\d)? (.* )?(19|20)\d\d`)

// file is an mbox that is open.
type file struct {
	*os.File
	size  int64
	inode uint64
	mod   time.Time
}

func openFile(root *os.Root, name string) (*file, error) {
	// A symbolic link out of the folder is refused by root; a pipe would block.
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

// part returns up to n bytes from an offset on.
func (f *file) part(from, n int64) ([]byte, error) {
	if n = min(n, f.size-from); n <= 0 {
		return nil, nil
	}
	buffer := make([]byte, n)
	read, err := f.ReadAt(buffer, from)
	if errors.Is(err, io.EOF) {
		err = nil // it was cut meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("read mbox: %w", err)
	}
	return buffer[:read], nil
}

// digest is over the bytes before an offset.
func (f *file) digest(offset int64) (string, error) {
	from := max(offset-checked, 0)
	before, err := f.part(from, offset-from)
	sum := sha256.Sum256(before)
	return hex.EncodeToString(sum[:]), err
}

// isStart reports whether a separator stands at an offset: at the beginning of
// the file or after an empty line.
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

// next returns the first start at or after an offset; the size of the file if
// there is none.
func (f *file) next(offset int64) (int64, error) {
	for at, size := offset, int64(firstWindow); at < f.size; at, size = at+size, min(2*size, window) {
		// The overlap finds separators on the border of two windows.
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

// previous returns the last start before an offset; -1 if there is none.
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

// item returns the message that stands between two offsets.
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

// content returns the bytes of the message at an offset, as it was before it
// was put into the file.
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
	// The empty line before the next separator belongs to the file.
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

// unquote takes one ">" from each line that is a quoted separator.
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
