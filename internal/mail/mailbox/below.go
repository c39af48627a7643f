package mailbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// Below reports whether a path is one of the folders or in one of them, with
// symbolic links followed: a link in a mailbox leads nowhere else. A path at which
// there is nothing is taken as it is written.
func Below(folders []string, path string) bool {
	actual, ok := followed(path)
	return ok && slices.ContainsFunc(folders, func(folder string) bool {
		folder, ok := followed(folder)
		rest, err := filepath.Rel(folder, actual)
		return ok && err == nil && filepath.IsLocal(rest)
	})
}

// followed returns a path with its symbolic links followed.
func followed(path string) (string, bool) {
	actual, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Clean(path), true
	}
	return actual, err == nil
}
