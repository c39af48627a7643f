package eml

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// fixture is a folder of .eml files and another program that writes to it.
type fixture struct {
	dir  string
	next atomic.Int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(f.dir, "Work", "Archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) path(folder string) string {
	if folder == inbox {
		return f.dir
	}
	return filepath.Join(f.dir, folder)
}

// deliver writes a file under a temporary name and renames it, as programs do.
func (f *fixture) deliver(t *testing.T, folder string, raw []byte) {
	t.Helper()
	n := f.next.Add(1)
	file := filepath.Join(f.path(folder), fmt.Sprintf("message: %d.EML", n))
	written := time.Unix(1_700_000_000+n, 0)
	err := errors.Join(os.WriteFile(file+".part", raw, 0o600), os.Chtimes(file+".part", written, written), os.Rename(file+".part", file))
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) file(t *testing.T, folder, messageID string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.path(folder), "*.EML"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && mailbox.MessageID(raw) == messageID {
			return file
		}
	}
	t.Fatalf("no message %s in %s", messageID, folder)
	return ""
}

func (f *fixture) reader(t *testing.T) *Reader {
	t.Helper()
	r, err := NewReader(f.dir, Config{MaxSize: mailboxtest.MaxSize, Interval: time.Hour})
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
			Inbox: inbox, Other: "Work/Archive", Deliver: f.deliver,
			Reader: func(t *testing.T) mailbox.Reader { return f.reader(t) },
			Move: func(t *testing.T, from, to, messageID string) {
				file := f.file(t, from, messageID)
				if err := os.Rename(file, filepath.Join(f.path(to), filepath.Base(file))); err != nil {
					t.Fatal(err)
				}
			},
			Remove: func(t *testing.T, folder, messageID string) {
				if err := os.Remove(f.file(t, folder, messageID)); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// TestWrittenAgain checks that a rewritten file is another message, and is not
// read at the location of the first one.
func TestWrittenAgain(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.deliver(t, inbox, mailboxtest.Message(1, "first"))
	r := f.reader(t)
	first, err := r.Changes(t.Context(), inbox, nil, 10, nil)
	if err != nil || len(first.New) != 1 {
		t.Fatalf("changes: %+v, %v", first, err)
	}
	file := f.file(t, inbox, mailboxtest.ID(1))
	if err := os.WriteFile(file, mailboxtest.Message(2, "second"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = r.Read(t.Context(), first.New, func(_ mailbox.Item, raw []byte, err error) error { return err })
	if !errors.Is(err, mailbox.ErrGone) {
		t.Errorf("read at the old location: %v, want ErrGone", err)
	}
}

// TestForeignFiles checks that other files, and files outside behind a symbolic
// link, are not read.
func TestForeignFiles(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	outside := filepath.Join(t.TempDir(), "secret.eml")
	err := errors.Join(
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(f.dir, "link.eml")),
		os.Symlink(filepath.Dir(outside), filepath.Join(f.dir, "Linked")),
		os.WriteFile(filepath.Join(f.dir, "notes.txt"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(f.dir, ".hidden.eml"), []byte("x"), 0o600),
		os.Mkdir(filepath.Join(f.dir, "folder.eml"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := f.reader(t)
	if got, err := r.Changes(t.Context(), inbox, nil, 10, nil); err != nil || len(got.New) > 0 {
		t.Errorf("changes: %+v, %v; want none", got, err)
	}
	if _, err := r.End(t.Context(), "Linked"); !errors.Is(err, mailbox.ErrNoFolder) {
		t.Errorf("a folder outside: %v, want ErrNoFolder", err)
	}
}
