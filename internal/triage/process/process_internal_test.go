package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPasswordFilesMustBeInAllowedFolders(t *testing.T) {
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

func TestModelOfTierT3WritesTexts(t *testing.T) {
	t.Parallel()
	for tier, writes := range map[string]bool{"": false, "t1": false, "t3": true} {
		var c Config
		if tier != "" {
			c.Models = filepath.Join(t.TempDir(), "models.yaml")
			text := "servers: {here: {url: 'http://127.0.0.1:1'}}\ntiers: {" + tier + ": {server: here, model: m}}\n"
			if err := os.WriteFile(c.Models, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		models, err := c.openModels()
		if err != nil {
			t.Fatal(err)
		}
		if w := models.Writer(); (w != nil) != writes {
			t.Errorf("with the tier %q the writer is %v", tier, w)
		}
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	}
}
