package mailbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Below reports whether a path is one of the folders or inside one of them,
// after following symbolic links: a link in a mailbox must not lead outside.
// For a path that does not exist, the existing parents are followed, so that
// nothing can be created through a link either.
func Below(folders []string, path string) bool {
	actual, ok := followed(path)
	return ok && slices.ContainsFunc(folders, func(folder string) bool {
		folder, ok := followed(folder)
		rest, err := filepath.Rel(folder, actual)
		return ok && err == nil && filepath.IsLocal(rest)
	})
}

// followed returns a path with its symbolic links followed. A dangling link
// fails.
func followed(path string) (string, bool) {
	actual, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return actual, err == nil
	}
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) || parent == path {
		return "", false
	}
	above, ok := followed(parent)
	return filepath.Join(above, filepath.Base(path)), ok
}
