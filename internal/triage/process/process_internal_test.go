package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPasswordsAreReadInTheirFoldersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := (Config{Passwords: []string{t.TempDir()}}).readPassword(path); err == nil {
		t.Error("a file outside the folders was read")
	}
	if text, err := (Config{Passwords: []string{dir}}).readPassword(path); err != nil || string(text) != "s" {
		t.Errorf("a file in a folder = %q, %v", text, err)
	}
}
