package mbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

const line = "From sender@mailbox.test Mon Jan  2 15:04:05 2006\n"

// fixture is an mbox and another program that uses it.
type fixture struct{ path string }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{filepath.Join(t.TempDir(), "mail")}
	f.write(t, "")
	return f
}

func (f *fixture) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace rewrites the file, as a mail reader does.
func (f *fixture) replace(t *testing.T, text string) {
	t.Helper()
	// Keep the old file open so that its inode is not reused.
	old, err := os.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Close() })
	if err := errors.Join(os.WriteFile(f.path+".next", []byte(text), 0o600), os.Rename(f.path+".next", f.path)); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (f *fixture) deliver(t *testing.T, _ string, raw []byte) {
	t.Helper()
	quoted := regexp.MustCompile(`(?m)^(>*From )`).ReplaceAll(raw, []byte(">$1"))
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(line + string(quoted) + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) reader(t *testing.T) *Reader {
	t.Helper()
	r, err := NewReader(f.path, Config{MaxSize: mailboxtest.MaxSize, Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestContract(t *testing.T) {
	t.Parallel()

	mailboxtest.TestReader(t, func(t *testing.T) mailboxtest.Account {
		f := newFixture(t)
		return mailboxtest.Account{
			Inbox: inbox, Deliver: f.deliver,
			Reader: func(t *testing.T) mailbox.Reader { return f.reader(t) },
			Void:   func(t *testing.T, _ string) { f.replace(t, f.text(t)) },
			Remove: func(t *testing.T, _, messageID string) {
				var kept strings.Builder
				for _, message := range strings.SplitAfter(f.text(t), "\n\n"+line) {
					if !strings.Contains(message, messageID) {
						kept.WriteString(message)
					} else if strings.HasPrefix(message, line) { // the first message
						kept.WriteString(line)
					}
				}
				f.replace(t, strings.TrimSuffix(kept.String(), line))
			},
		}
	})
}

// contents reads all messages of a text forwards and backwards, and fails if
// the two differ.
func contents(t *testing.T, text string) []string {
	t.Helper()
	f := newFixture(t)
	f.write(t, text)
	r := f.reader(t)
	changes, err := r.Changes(t.Context(), inbox, nil, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	var back []mailbox.Item
	var before mailbox.Cursor
	for {
		items, next, err := r.Older(t.Context(), inbox, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		for _, item := range items {
			back = append([]mailbox.Item{item}, back...)
		}
		before = next
	}
	if fmt.Sprint(back) != fmt.Sprint(changes.New) {
		t.Errorf("backwards %v, forwards %v", back, changes.New)
	}
	var all []string
	err = r.Read(t.Context(), changes.New, func(_ mailbox.Item, raw []byte, err error) error {
		all = append(all, string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFormat(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"two":                     {line + "A: 1\n\nx\n\n" + line + "B: 1\n\ny\n\n", []string{"A: 1\n\nx\n", "B: 1\n\ny\n"}},
		"without a last line":     {line + "A: 1\n\nx", []string{"A: 1\n\nx"}},
		"carriage returns":        {strings.ReplaceAll(line+"A: 1\n\nx\n\n"+line+"B: 1\n\ny\n\n", "\n", "\r\n"), []string{"A: 1\r\n\r\nx\r\n", "B: 1\r\n\r\ny\r\n"}},
		"quoted once":             {line + "A: 1\n\n>From here\n", []string{"A: 1\n\nFrom here\n"}},
		"quoted twice":            {line + "A: 1\n\n>>From here\n", []string{"A: 1\n\n>From here\n"}},
		"a sentence":              {line + "A: 1\n\n\nFrom here on it is dark.\n", []string{"A: 1\n\n\nFrom here on it is dark.\n"}},
		"no empty line before":    {line + "A: 1\n\nx\n" + line + "y\n", []string{"A: 1\n\nx\n" + line + "y\n"}},
		"other forms of the line": {"From - Mon Jan 02 15:04:05 2006\nA: 1\n\nx\n\nFrom a b@c Mon Jan  2 15:04:05 2006 +0100\nB: 1\n\n", []string{"A: 1\n\nx\n", "B: 1\n"}},
		"nothing before":          {"garbage\n\n" + line + "A: 1\n\nx\n", []string{"A: 1\n\nx\n"}},
		"garbage":                 {strings.Repeat("From \n\n", 100), nil},
		"empty":                   {"", nil},
		"over the windows": {
			line + "A: 1\n\n" + strings.Repeat("1234567\n", 900) + "\n" + line + "B: 1\n\ny\n",
			[]string{"A: 1\n\n" + strings.Repeat("1234567\n", 900), "B: 1\n\ny\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contents(t, test.text); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
				t.Errorf("messages %q, want %q", got, test.want)
			}
		})
	}
}

// TestWindows has separators at every offset around the border of two windows.
func TestWindows(t *testing.T) {
	t.Parallel()

	for shift := -12; shift <= 12; shift++ {
		size := firstWindow + shift - len(line)
		if shift%2 == 0 {
			size += 2 * firstWindow // the border after the second window
		}
		text := line + strings.Repeat("x", size-2) + "\n\n" + line + "B: 1\n\ny\n"
		f := newFixture(t)
		f.write(t, text)
		r := f.reader(t)
		forwards, err := r.Changes(t.Context(), inbox, nil, 10, nil)
		backwards, _, errOlder := r.Older(t.Context(), inbox, nil, 10)
		if err := errors.Join(err, errOlder); err != nil {
			t.Fatal(err)
		}
		if len(forwards.New) != 2 || len(backwards) != 2 {
			t.Errorf("shifted by %d: %d messages forwards and %d backwards, want 2", shift, len(forwards.New), len(backwards))
		}
	}
}

func TestReceived(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		strings.TrimSpace(line):                            "2006-01-02T15:04:05Z",
		"From a Mon Jan  2 15:04:05 2006 +0100":            "2006-01-02T14:04:05Z",
		"From a@b Mon Jan  2 15:04 2006":                   "2006-01-02T15:04:00Z",
		"From a@b Tue Never 99 99:99:99 2006":              "0001-01-01T00:00:00Z",
		"From " + strings.Repeat("a ", 200) + "15:04 2006": "0001-01-01T00:00:00Z",
	} {
		if got := received(text).Format(time.RFC3339); got != want {
			t.Errorf("received(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestUnfinished reads a message that is still being written.
func TestUnfinished(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.write(t, line+"A: 1\n\nfirst")
	r := f.reader(t)
	known := func(context.Context) ([]mailbox.Location, error) { return nil, nil }
	first, err := r.Changes(t.Context(), inbox, nil, 10, known)
	if err != nil || len(first.New) != 1 {
		t.Fatalf("an unfinished message: %+v, %v", first, err)
	}
	f.write(t, line+"A: 1\n\nfirst and the rest\n\n"+line+"B: 1\n\ny\n")
	second, err := r.Changes(t.Context(), inbox, first.Next, 10, known)
	if err != nil || !second.Reset || len(second.New) != 2 {
		t.Errorf("after it was finished: %+v, %v; want a reset and both messages", second, err)
	}
}

// TestFolder reads a folder of files, and no file outside it.
func TestFolder(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "Inbox"), []byte(line+"A: 1\n\nx\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "Sent"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "Inbox.msf"), []byte("// index"), 0o600),
		os.WriteFile(outside, []byte(line+"A: 1\n\nsecret\n"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "Linked")),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	folders, err := r.Folders(t.Context())
	if want := "[{Inbox inbox} {Sent sent}]"; err != nil || fmt.Sprint(folders) != want {
		t.Errorf("folders %v, %v; want %s", folders, err, want)
	}
	for _, folder := range []string{"Linked", "folder", inbox, "../" + filepath.Base(filepath.Dir(outside)) + "/secret"} {
		if _, err := r.End(t.Context(), folder); !errors.Is(err, mailbox.ErrNoFolder) {
			t.Errorf("folder %q: %v, want ErrNoFolder", folder, err)
		}
	}
}

// FuzzRead checks that any file is read without a panic, each byte at most
// once.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line + "A: 1\n\nx\n\n" + line + "B: 1\n\ny\n"))
	f.Add([]byte(">From \nFrom \r\n\r\nFrom 1:11 1999"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "mail")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		changes, err := r.Changes(t.Context(), inbox, nil, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		err = r.Read(t.Context(), changes.New, func(_ mailbox.Item, raw []byte, err error) error {
			total += len(raw)
			return err
		})
		if err != nil || total > len(text) {
			t.Errorf("read %d of %d bytes, %v", total, len(text), err)
		}
		older, _, err := r.Older(t.Context(), inbox, nil, 1<<20)
		if err != nil || len(older) != len(changes.New) || !bytes.Contains(text, []byte(separator)) && len(older) > 0 {
			t.Errorf("%d messages backwards, %d forwards, %v", len(older), len(changes.New), err)
		}
	})
}
