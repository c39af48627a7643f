package maildir

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// systemFlag returns the flag of a letter.
func systemFlag(letter byte) string {
	switch letter {
	case 'D':
		return mailbox.FlagDraft
	case 'F':
		return mailbox.FlagFlagged
	case 'P':
		return mailbox.FlagForwarded
	case 'R':
		return mailbox.FlagAnswered
	case 'S':
		return mailbox.FlagSeen
	case 'T':
		return mailbox.FlagDeleted
	}
	return ""
}

const (
	systemLetters  = "DFPRST"
	keywordsFile   = "dovecot-keywords"
	keywordsLock   = "dovecot-uidlist.lock" // Dovecot guards both files with it
	keywordLetters = 26
	staleLock      = 2 * time.Minute // Dovecot's age for a stale lock
)

// keywords holds the names of the letters from a on; unused letters are empty.
type keywords []string

// keywords reads the names of a folder's keyword letters.
func (a account) keywords(dir string) (keywords, error) {
	raw, err := a.root.ReadFile(path.Join(dir, keywordsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read keywords: %w", err)
	}
	var names keywords
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		number, name, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= keywordLetters || mailbox.CheckFlag(name) != nil {
			continue
		}
		for len(names) <= n {
			names = append(names, "")
		}
		names[n] = name
	}
	return names, nil
}

// flags returns the flags of letters. Letters without a name are omitted.
func (k keywords) flags(letters string) []string {
	var flags []string
	for i := range len(letters) {
		if flag := systemFlag(letters[i]); flag != "" {
			flags = append(flags, flag)
		} else if n := int(letters[i]) - 'a'; n >= 0 && n < len(k) && k[n] != "" {
			flags = append(flags, k[n])
		}
	}
	return mailbox.Flags(flags...)
}

// letters returns the letters of flags, and the keywords without a letter.
func (k keywords) letters(flags []string) (letters string, missing []string) {
	var result []byte
next:
	for _, flag := range flags {
		for i := range len(systemLetters) {
			if strings.EqualFold(systemFlag(systemLetters[i]), flag) {
				result = append(result, systemLetters[i])
				continue next
			}
		}
		n := slices.IndexFunc(k, func(name string) bool { return strings.EqualFold(name, flag) })
		if n < 0 {
			missing = append(missing, flag)
			continue
		}
		result = append(result, byte('a'+n))
	}
	slices.Sort(result)
	return string(slices.Compact(result)), missing
}

// unexplained returns the letters of a file name without a known flag.
func (k keywords) unexplained(letters string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && len(k.flags(string(r))) > 0 {
			return -1
		}
		return r
	}, letters)
}

// assign returns the letters of flags in a folder, and assigns letters to new
// keywords.
func (a account) assign(dir string, flags []string) (string, error) {
	names, err := a.keywords(dir)
	if err != nil {
		return "", err
	}
	letters, missing := names.letters(flags)
	if len(missing) == 0 {
		return letters, nil
	}
	unlock, err := a.lockKeywords(dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if names, err = a.keywords(dir); err != nil {
		return "", err
	}
	if letters, missing = names.letters(flags); len(missing) == 0 {
		return letters, nil
	}
	names = append(names, missing...)
	if len(names) > keywordLetters {
		return "", fmt.Errorf("a Maildir folder holds at most %d keywords: %w", keywordLetters, mailbox.ErrUnsupported)
	}
	if err := a.writeKeywords(dir, names); err != nil {
		return "", err
	}
	letters, _ = names.letters(flags)
	return letters, nil
}

func (a account) writeKeywords(dir string, names keywords) error {
	var text strings.Builder
	for n, name := range names {
		if name != "" {
			fmt.Fprintf(&text, "%d %s\n", n, name)
		}
	}
	next := path.Join(dir, keywordsFile+".countersign")
	if err := a.writeFile(next, []byte(text.String()), os.O_TRUNC); err != nil {
		return err
	}
	if err := a.root.Rename(next, path.Join(dir, keywordsFile)); err != nil {
		return fmt.Errorf("write keywords: %w", err)
	}
	return a.syncDir(dir)
}

// lockKeywords locks the keywords of a folder.
func (a account) lockKeywords(dir string) (unlock func(), err error) {
	name := path.Join(dir, keywordsLock)
	if info, err := a.root.Lstat(name); err == nil && time.Since(info.ModTime()) > staleLock {
		_ = a.root.Remove(name) // stale; the process that creates the next one has the lock
	}
	f, err := a.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &mailbox.BusyError{Reason: "another program holds " + keywordsLock, After: time.Second}
	}
	if err != nil {
		return nil, fmt.Errorf("lock keywords: %w", err)
	}
	f.Close()
	return func() { _ = a.root.Remove(name) }, nil
}

// writeFile writes and syncs a file.
func (a account) writeFile(name string, content []byte, flag int) error {
	f, err := a.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// syncDir makes the names of a folder durable.
func (a account) syncDir(dir string) error {
	f, err := a.root.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
