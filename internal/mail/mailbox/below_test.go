package mailbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"mail/ann", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"mail/out": "other", "in": "mail", "mail/nowhere": "other/absent"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	folders := []string{filepath.Join(dir, "mail"), filepath.Join(dir, "absent")}

	for path, want := range map[string]bool{
		"mail": true, "mail/ann": true, "in/ann": true, "mail/new": true, "in/new": true, "mail/new/cur": true, "absent/x": true,
		"other": false, "mail/../other": false, "mail/out": false, "mail/out/new": false, "mail/out/new/cur": false, "mail/nowhere": false, "mail/nowhere/cur": false, "mailbox": false, "": false,
	} {
		if got := mailbox.Below(folders, filepath.Join(dir, path)); got != want {
			t.Errorf("Below(%q) = %v, want %v", path, got, want)
		}
	}
	if mailbox.Below(nil, dir) {
		t.Error("Below allows a path without folders")
	}
}
