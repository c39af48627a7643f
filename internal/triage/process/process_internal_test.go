package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPathsAreBelowTheFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"mail/ann", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other", "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "mail", "out")); err != nil {
		t.Fatal(err)
	}
	folders := []string{filepath.Join(dir, "mail"), filepath.Join(dir, "absent")}

	for path, want := range map[string]bool{
		"mail": true, "mail/ann": true, "other": false, "mail/../other": false, "mail/out": false, "mail/out/secret": false, "mail/absent": false, "mailbox": false, "": false,
	} {
		if got := below(folders, filepath.Join(dir, path)); got != want {
			t.Errorf("below(%s) = %v, want %v", path, got, want)
		}
	}
	c := Config{Passwords: folders}
	if _, err := c.readPassword(filepath.Join(dir, "other", "secret")); err == nil {
		t.Error("a file outside the folders was read")
	}
	c.Passwords = []string{filepath.Join(dir, "other")}
	if text, err := c.readPassword(filepath.Join(dir, "other", "secret")); err != nil || string(text) != "s" {
		t.Errorf("a file in a folder = %q, %v", text, err)
	}
	if below(nil, dir) {
		t.Error("without folders a path is allowed")
	}
}
