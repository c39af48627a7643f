package maildir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Writer changes a Maildir.
type Writer struct {
	account  account
	identify mailbox.Identify
}

// NewWriter returns a writer of the Maildir in a folder of the file system.
func NewWriter(dir string, identify mailbox.Identify, c Config) (*Writer, error) {
	a, err := open(dir, c.MaxSize)
	if err != nil {
		return nil, err
	}
	return &Writer{a, identify}, nil
}

// Close closes the folder.
func (w *Writer) Close() error { return w.account.root.Close() }

// Folders returns INBOX and the subfolders, in both layouts.
func (w *Writer) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	_, folders, err := w.account.folders()
	return folders, errors.Join(ctx.Err(), err)
}

// Find tries the location, then reads the header of every message.
func (w *Writer) Find(ctx context.Context, at mailbox.Location, messageID string, identity []byte) (mailbox.State, error) {
	state, err := w.at(at, identity)
	if !errors.Is(err, mailbox.ErrGone) || messageID == "" {
		return state, err
	}
	paths, folders, err := w.account.folders()
	if err != nil {
		return mailbox.State{}, err
	}
	slices.SortStableFunc(folders, func(a, b mailbox.Folder) int {
		if (a.Name == at.Folder) == (b.Name == at.Folder) {
			return 0
		}
		if a.Name == at.Folder {
			return -1
		}
		return 1
	})
	for _, folder := range folders {
		entries, err := w.search(ctx, paths[folder.Name], messageID)
		if err != nil {
			return mailbox.State{}, err
		}
		for _, e := range entries {
			state, err := w.at(mailbox.Location{Folder: folder.Name, Key: e.Key}, identity)
			if !errors.Is(err, mailbox.ErrGone) {
				return state, err
			}
		}
	}
	return mailbox.State{}, mailbox.ErrGone
}

// at returns the state of a location, if the message there has the identity.
func (w *Writer) at(at mailbox.Location, identity []byte) (mailbox.State, error) {
	dir, e, err := w.entry(at)
	if err != nil {
		return mailbox.State{}, err
	}
	raw, err := w.account.read(fileOf(dir, e))
	if errors.Is(err, mailbox.ErrTooLarge) || err == nil && string(w.identify(raw)) != string(identity) {
		return mailbox.State{}, mailbox.ErrGone
	}
	if err != nil {
		return mailbox.State{}, err
	}
	return w.state(dir, at.Folder, e)
}

func (w *Writer) entry(at mailbox.Location) (dir string, e listing.Entry, err error) {
	dir, err = w.account.dir(at.Folder)
	if errors.Is(err, mailbox.ErrNoFolder) || !validKey(at.Key) {
		return "", e, mailbox.ErrGone
	}
	if err != nil {
		return "", e, err
	}
	e, err = w.account.find(dir, listing.Entry{Key: at.Key})
	return dir, e, err
}

func (w *Writer) state(dir, folder string, e listing.Entry) (mailbox.State, error) {
	names, err := w.account.keywords(dir)
	if err != nil {
		return mailbox.State{}, err
	}
	return mailbox.State{
		Location: mailbox.Location{Folder: folder, Key: e.Key}, Flags: names.flags(lettersOf(e)),
	}, nil
}

// search returns the messages of a folder with a Message-ID.
func (w *Writer) search(ctx context.Context, dir, messageID string) ([]listing.Entry, error) {
	var all, found []listing.Entry
	if err := w.account.list(dir, func(e listing.Entry) { all = append(all, e) }); err != nil {
		return nil, err
	}
	for _, e := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := w.account.header(fileOf(dir, e))
		if errors.Is(err, mailbox.ErrGone) {
			continue // renamed or deleted since the listing
		}
		if err != nil {
			return nil, err
		}
		if mailbox.MessageID(header) == messageID {
			found = append(found, e)
		}
	}
	return found, nil
}

// Change renames the file of a message, which is atomic: if another program
// changed the flags, it has renamed the file, and this rename fails.
func (w *Writer) Change(ctx context.Context, expected mailbox.State, change mailbox.Change) (mailbox.State, error) {
	if err := errors.Join(ctx.Err(), change.Check()); err != nil {
		return mailbox.State{}, err
	}
	dir, e, err := w.entry(expected.Location)
	if err != nil {
		return mailbox.State{}, err
	}
	state, err := w.state(dir, expected.Folder, e)
	if err != nil {
		return mailbox.State{}, err
	}
	if !state.Equal(expected) {
		return mailbox.State{}, mailbox.ErrChanged
	}
	target, folder := dir, expected.Folder
	if change.MoveTo != "" && change.MoveTo != folder {
		folder = change.MoveTo
		if target, err = w.account.dir(folder); err != nil {
			return mailbox.State{}, err
		}
	}
	if target == dir && slices.Equal(change.Apply(state.Flags), state.Flags) {
		return state, nil
	}
	return w.rename(dir, e, target, folder, change.Apply(state.Flags))
}

// rename gives a message its new flags and, in another folder, a new base name:
// programs that number messages would see the old one twice.
func (w *Writer) rename(dir string, e listing.Entry, target, folder string, flags []string) (mailbox.State, error) {
	letters, err := w.account.assign(target, flags)
	if err != nil {
		return mailbox.State{}, err
	}
	next := listing.Entry{Key: e.Key}
	if target == dir {
		names, err := w.account.keywords(dir)
		if err != nil {
			return mailbox.State{}, err
		}
		letters = sortLetters(letters + names.unexplained(lettersOf(e)))
	} else {
		next.Key = uniqueName()
	}
	next.Flags = "cur:2," + letters
	err = w.account.root.Rename(fileOf(dir, e), fileOf(target, next))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := w.account.find(dir, listing.Entry{Key: e.Key}); err != nil {
			return mailbox.State{}, err
		}
		return mailbox.State{}, mailbox.ErrChanged
	}
	if err != nil {
		return mailbox.State{}, fmt.Errorf("rename message: %w", err)
	}
	for _, changed := range slices.Compact([]string{path.Join(target, "cur"), path.Join(dir, e.Flags[:3])}) {
		if err := w.account.syncDir(changed); err != nil {
			return mailbox.State{}, err
		}
	}
	return w.state(target, folder, next)
}

func sortLetters(letters string) string {
	sorted := []byte(letters)
	slices.Sort(sorted)
	return string(slices.Compact(sorted))
}

// Content reads the message at a location.
func (w *Writer) Content(ctx context.Context, at mailbox.Location) ([]byte, error) {
	dir, e, err := w.entry(at)
	if err = errors.Join(ctx.Err(), err); err != nil {
		return nil, err
	}
	return w.account.read(fileOf(dir, e))
}

// Locate reads the header of every message of a folder.
func (w *Writer) Locate(ctx context.Context, folder, messageID string) (mailbox.Location, error) {
	dir, err := w.account.dir(folder)
	if err != nil {
		return mailbox.Location{}, err
	}
	found, err := w.search(ctx, dir, messageID)
	if err == nil && (len(found) == 0 || messageID == "") {
		err = mailbox.ErrGone
	}
	if err != nil {
		return mailbox.Location{}, err
	}
	return mailbox.Location{Folder: folder, Key: found[0].Key}, nil
}

// Append writes the message to tmp and renames it into place.
func (w *Writer) Append(ctx context.Context, folder string, flags []string, raw []byte) (mailbox.Location, error) {
	if err := (mailbox.Change{Add: flags}).Check(); err != nil {
		return mailbox.Location{}, err
	}
	dir, err := w.account.dir(folder)
	if err != nil {
		return mailbox.Location{}, err
	}
	if id := mailbox.MessageID(raw); id != "" {
		found, err := w.search(ctx, dir, id)
		if err != nil {
			return mailbox.Location{}, err
		}
		if len(found) > 0 {
			return mailbox.Location{Folder: folder, Key: found[0].Key}, mailbox.ErrExists
		}
	}
	letters, err := w.account.assign(dir, mailbox.Flags(flags...))
	if err != nil {
		return mailbox.Location{}, err
	}
	e := listing.Entry{Key: uniqueName(), Flags: "new"}
	if letters != "" {
		e.Flags = "cur:2," + letters
	}
	return mailbox.Location{Folder: folder, Key: e.Key}, w.deliver(dir, e, raw)
}

func (w *Writer) deliver(dir string, e listing.Entry, raw []byte) error {
	tmp := path.Join(dir, "tmp")
	if err := w.account.root.Mkdir(tmp, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create tmp: %w", err)
	}
	written := path.Join(tmp, e.Key)
	if err := w.account.writeFile(written, raw, os.O_EXCL); err != nil {
		_ = w.account.root.Remove(written)
		return err
	}
	if err := w.account.root.Rename(written, fileOf(dir, e)); err != nil {
		_ = w.account.root.Remove(written)
		return fmt.Errorf("deliver message: %w", err)
	}
	return w.account.syncDir(path.Join(dir, e.Flags[:3]))
}

// uniqueName returns a base name that no program has used before.
func uniqueName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	host = strings.NewReplacer("/", "_", ":", "_", ".", "_").Replace(host)
	now := time.Now()
	return fmt.Sprintf("%d.M%dP%dR%s.%s", now.Unix(), now.Nanosecond()/1000, os.Getpid(), rand.Text(), host)
}
