package maildir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
)

// fixture is a Maildir and another program that uses it.
type fixture struct {
	dir  string
	next atomic.Int64
}

func newFixture(t *testing.T, folders ...string) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir()}
	for _, folder := range append(folders, "") {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(f.dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// path returns the path of a folder in the layout of the fixture.
func (f *fixture) path(folder string) string {
	if folder == inbox {
		return f.dir
	}
	if _, err := os.Stat(filepath.Join(f.dir, "."+folder)); err == nil {
		return filepath.Join(f.dir, "."+folder)
	}
	return filepath.Join(f.dir, folder)
}

func (f *fixture) name() string {
	return fmt.Sprintf("17000%05d.other.host", f.next.Add(1))
}

func (f *fixture) deliver(t *testing.T, folder string, raw []byte) {
	t.Helper()
	name := f.name()
	tmp := filepath.Join(f.path(folder), "tmp", name)
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, tmp, filepath.Join(f.path(folder), "new", name))
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// file returns the path of a message.
func (f *fixture) file(t *testing.T, folder, messageID string) string {
	t.Helper()
	for _, part := range []string{"new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(f.path(folder), part))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			file := filepath.Join(f.path(folder), part, entry.Name())
			if raw, err := os.ReadFile(file); err == nil && mailbox.MessageID(raw) == messageID {
				return file
			}
		}
	}
	t.Fatalf("no message %s in %s", messageID, folder)
	return ""
}

func (f *fixture) setFlag(t *testing.T, folder, messageID, flag string) {
	t.Helper()
	file := f.file(t, folder, messageID)
	base, letters, _ := strings.Cut(filepath.Base(file), ":2,")
	letter := map[string]string{mailbox.FlagFlagged: "F", mailbox.FlagSeen: "S"}[flag]
	if letter == "" {
		letter = "a"
		if err := os.WriteFile(filepath.Join(f.path(folder), keywordsFile), []byte("0 "+flag+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rename(t, file, filepath.Join(f.path(folder), "cur", base+":2,"+sortLetters(letters+letter)))
}

func (f *fixture) account() mailboxtest.Account {
	return mailboxtest.Account{
		Inbox: inbox, Other: "Archive", Keywords: true,
		Reader: func(t *testing.T) mailbox.Reader {
			r, err := NewReader(f.dir, Config{MaxSize: mailboxtest.MaxSize, Interval: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			return r
		},
		Writer:  func(t *testing.T) mailbox.Writer { return f.writer(t) },
		Deliver: f.deliver,
		SetFlag: f.setFlag,
		Move: func(t *testing.T, from, to, messageID string) {
			file := f.file(t, from, messageID)
			_, flags, _ := strings.Cut(filepath.Base(file), ":2,")
			rename(t, file, filepath.Join(f.path(to), "cur", f.name()+":2,"+flags))
		},
		Remove: func(t *testing.T, folder, messageID string) {
			if err := os.Remove(f.file(t, folder, messageID)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func (f *fixture) writer(t *testing.T) *Writer {
	t.Helper()
	w, err := NewWriter(f.dir, mailboxtest.Identify, Config{MaxSize: mailboxtest.MaxSize})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestContract(t *testing.T) {
	t.Parallel()

	for layout, folder := range map[string]string{"Maildir++": ".Archive", "fs": "Archive"} {
		open := func(t *testing.T) mailboxtest.Account { return newFixture(t, folder).account() }
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			t.Run("reader", func(t *testing.T) { mailboxtest.TestReader(t, open) })
			t.Run("writer", func(t *testing.T) { mailboxtest.TestWriter(t, open) })
		})
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()

	f := newFixture(t, ".Sent", ".Lists.go", "Work/Projects", "Archive")
	outside := newFixture(t)
	for name, target := range map[string]string{"Linked": outside.dir, ".Away": outside.dir, "Up": ".."} {
		if err := os.Symlink(target, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := f.account().Reader(t)
	folders, err := r.Folders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]mailbox.Use{}
	for _, folder := range folders {
		got[folder.Name] = folder.Use
	}
	want := map[string]mailbox.Use{
		inbox: mailbox.UseInbox, "Sent": mailbox.UseSent, "Lists.go": "", "Work/Projects": "", "Archive": mailbox.UseArchive,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("folders %v, want %v", got, want)
	}
	for _, folder := range []string{"Linked", "Away", "Up", ".Sent", "Work/../Archive", "Work"} {
		if _, err := r.End(t.Context(), folder); !errors.Is(err, mailbox.ErrNoFolder) {
			t.Errorf("folder %q: %v, want ErrNoFolder", folder, err)
		}
	}
}

// TestForeignFiles checks that files that are not messages are not read, in
// particular files outside behind a symbolic link.
func TestForeignFiles(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(f.dir, "new", "1.link.host")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cur/.hidden", "tmp/1.unfinished.host"} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.dir, "cur", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := f.account().Reader(t)
	if got, err := r.Changes(t.Context(), inbox, nil, 10, nil); err != nil || len(got.New) > 0 {
		t.Errorf("changes: %+v, %v; want none", got, err)
	}
	items := []mailbox.Item{{Location: mailbox.Location{Folder: inbox, Key: "1.link.host"}}}
	err := r.Read(t.Context(), items, func(_ mailbox.Item, raw []byte, err error) error {
		if len(raw) > 0 {
			t.Errorf("read %q through a link", raw)
		}
		return err
	})
	if err == nil {
		t.Error("a link to a file outside is read without an error")
	}
}

// TestKeywords checks that labels follow Dovecot's own file, which is written
// only under its lock.
func TestKeywords(t *testing.T) {
	t.Parallel()

	f := newFixture(t, ".Archive")
	f.deliver(t, inbox, mailboxtest.Message(1, "hello"))
	file := filepath.Join(f.dir, keywordsFile)
	if err := os.WriteFile(file, []byte("0 $Important\n2 other\nx y\n99 far\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, ".Archive", keywordsFile), []byte("0 else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rename(t, f.file(t, inbox, mailboxtest.ID(1)), filepath.Join(f.dir, "cur", "1.a.b:2,Sacz"))
	w := f.writer(t)
	state, err := w.Find(t.Context(), mailbox.Location{Folder: inbox, Key: "1.a.b"}, "", mailboxtest.Identify(mailboxtest.Message(1, "hello")))
	if want := `[$Important \Seen other]`; err != nil || fmt.Sprint(state.Flags) != want {
		t.Fatalf("flags are %v, %v; want %s", state.Flags, err, want)
	}

	lock := filepath.Join(f.dir, keywordsLock)
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{"third"}}); !errors.Is(err, mailbox.ErrBusy) {
		t.Errorf("under the lock of another program: %v, want ErrBusy", err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	after, err := w.Change(t.Context(), state, mailbox.Change{Add: []string{"third"}})
	if err != nil {
		t.Fatal(err)
	}
	// The unmapped letter z is kept.
	if got := filepath.Base(f.file(t, inbox, mailboxtest.ID(1))); got != "1.a.b:2,Sacdz" {
		t.Errorf("the file is %s", got)
	}
	if moved, err := w.Change(t.Context(), after, mailbox.Change{MoveTo: "Archive"}); err != nil || fmt.Sprint(moved.Flags) != fmt.Sprint(after.Flags) {
		t.Errorf("moved: %v, %v; want flags %v", moved.Flags, err, after.Flags)
	}
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}
