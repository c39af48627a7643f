package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"path"
	"slices"
	"strings"
)

// labelsFile lists the labels of the messages in the files beside it.
const labelsFile = "labels.jsonl"

// classes returns the folders of messages by class with their labels.
func classes() map[string]Labels {
	all := map[string]Labels{"phishing": {Phishing: new(true)}, "harmless": {Phishing: new(false)}}
	for _, priority := range []string{"urgent", "needs_response", "fyi", "promotional", "personal"} {
		all[priority] = Labels{Priority: priority}
	}
	return all
}

// layouts names the files and folders of the sets, for errors.
func layouts() string {
	return "mail-labelled/messages.jsonl, mail-labelled/phishing.json, request-sentences/train.tsv, injection/attacks.json, replies/talon, " +
		"each also without its first folder; " + "files of messages with " + labelsFile + "; and folders of .eml files or Maildirs by class: " +
		"urgent, needs_response, fyi, promotional, personal, phishing, harmless"
}

// Labelled returns a folder of labelled sets in one layout, with the first
// folder of each set, which the files may lack. A folder without a set is an
// error.
func Labelled(files fs.FS) (fs.FS, error) {
	sets := flat{files}
	for _, name := range []string{
		"mail-labelled/messages.jsonl", "mail-labelled/phishing.json", "request-sentences/train.tsv", "injection/attacks.json", "replies/talon", labelsFile,
	} {
		if _, err := fs.Stat(sets, name); err == nil {
			return sets, nil
		}
	}
	for name := range classes() {
		if all, err := messagesIn(sets, name); err != nil || len(all) > 0 {
			return sets, err
		}
	}
	return nil, fmt.Errorf("the folder has no labelled set: looked for %s", layouts())
}

// flat opens a file that is missing without the first folder of its name.
type flat struct{ files fs.FS }

// Open implements fs.FS.
func (f flat) Open(name string) (fs.File, error) {
	file, err := f.files.Open(name)
	if _, rest, ok := strings.Cut(name, "/"); ok && errors.Is(err, fs.ErrNotExist) {
		if short, err := f.files.Open(rest); err == nil {
			return short, nil
		}
	}
	return file, err
}

// filed reads the messages with labels of files: those of labels.jsonl, and
// those in folders by class. It keeps the labels for which keep returns true.
func filed(files fs.FS, source Source, keep func(Labels) bool) (Source, error) {
	digest := newDigest()
	add := func(name, owner string, labels Labels) error {
		if !keep(labels) {
			return nil
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		_, _ = digest.Write(raw)
		if owner == "" {
			owner = recipient(raw)
		}
		source.Examples = append(source.Examples, Example{ID: name, Raw: raw, Owner: owner, Labels: labels})
		return nil
	}
	list, err := fs.ReadFile(files, labelsFile)
	switch {
	case err == nil:
		_, _ = digest.Write(list)
		err = listed(list, add)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return source, fmt.Errorf("%s: %w", labelsFile, err)
	}
	for class, labels := range classes() {
		names, err := messagesIn(files, class)
		if err != nil {
			return source, err
		}
		for _, name := range names {
			if err := add(name, "", labels); err != nil {
				return source, err
			}
		}
	}
	if len(source.Examples) == 0 {
		return source, fmt.Errorf("messages by class: %w", ErrAbsent)
	}
	slices.SortFunc(source.Examples, func(a, b Example) int { return strings.Compare(a.ID, b.ID) })
	source.Digest = hexDigest(digest)
	return source, nil
}

// listed calls add with every line of labels.jsonl.
func listed(list []byte, add func(name, owner string, labels Labels) error) error {
	return lines(list, func(line []byte) error {
		var l struct {
			File, Owner string
			Labels      Labels
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if !fs.ValidPath(l.File) {
			return fmt.Errorf("file %q is not a name of a file beside %s", l.File, labelsFile)
		}
		return add(l.File, l.Owner, l.Labels)
	})
}

// messagesIn returns the names of the messages of a folder: .eml files, or the
// files of a Maildir.
func messagesIn(files fs.FS, folder string) ([]string, error) {
	var names []string
	for _, place := range []struct{ folder, ext string }{{folder, ".eml"}, {path.Join(folder, "new"), ""}, {path.Join(folder, "cur"), ""}} {
		entries, err := fs.ReadDir(files, place.folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", place.folder, err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() && strings.HasSuffix(e.Name(), place.ext) {
				names = append(names, path.Join(place.folder, e.Name()))
			}
		}
	}
	return names, nil
}

// recipient returns the first address in To, or "".
func recipient(raw []byte) string {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	to, err := m.Header.AddressList("To")
	if err != nil || len(to) == 0 {
		return ""
	}
	return to[0].Address
}
