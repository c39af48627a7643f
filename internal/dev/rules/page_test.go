package rules_test

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// maxColumns bounds the length of a line of the page's sources. The formatter
// breaks code, but no text, comment or class name.
const maxColumns = 120

// wideLines finds lines of the page's sources that are too long. The generated
// types are left out.
func wideLines(tree fs.FS) ([]string, error) {
	var wide []string
	for _, folder := range []string{"web/src", "web/e2e"} {
		err := fs.WalkDir(tree, folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !slices.Contains([]string{".ts", ".tsx", ".css"}, path.Ext(file)) || file == "web/src/api.d.ts" {
				return err
			}
			text, err := fs.ReadFile(tree, file)
			for i, line := range strings.Split(string(text), "\n") {
				if columns := utf8.RuneCountInString(line); columns > maxColumns {
					wide = append(wide, fmt.Sprintf("%s:%d: %d columns, more than %d", file, i+1, columns, maxColumns))
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return wide, nil
}

func TestPageHasNoWideLines(t *testing.T) {
	t.Parallel()

	wide, err := wideLines(root())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range wide {
		t.Error(line)
	}
}

func TestWideLines(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"web/src/api.d.ts":      {Data: []byte(strings.Repeat("x", 121))},
		"web/src/main.tsx":      {Data: []byte(strings.Repeat("é", 120) + "\n" + strings.Repeat("x", 121) + "\n")},
		"web/e2e/inbox.spec.ts": {Data: []byte("short\n")},
	}

	wide, err := wideLines(tree)

	if want := []string{"web/src/main.tsx:2: 121 columns, more than 120"}; err != nil || !slices.Equal(wide, want) {
		t.Errorf("wideLines() = %q, %v, want %q", wide, err, want)
	}
}
