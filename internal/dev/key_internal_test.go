package dev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

func vaultOf(t *testing.T, cfg Config) connection.Cipher {
	t.Helper()
	v, err := (&Environment{cfg: cfg, dir: cfg.Dir}).loadVault()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheKeyOutlivesTheEnvironment(t *testing.T) {
	t.Parallel()
	kept := Config{Dir: t.TempDir()}
	given := Config{SecretKey: strings.Repeat("QUFB", 10) + "QUE=", Dir: kept.Dir}
	tenant := envelope.TenantID(uuid.New())
	opens := func(of, by Config) bool {
		t.Helper()
		encrypted, err := vaultOf(t, of).Encrypt(tenant, "hooks", []byte("hunter2"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := vaultOf(t, by).Decrypt(tenant, "hooks", encrypted)
		return err == nil && string(text) == "hunter2"
	}

	if !opens(kept, kept) {
		t.Error("what the last key encrypted cannot be decrypted")
	}
	if !opens(given, given) || opens(kept, given) {
		t.Error("the key that was given is not the one that is used")
	}
	if opens(Config{}, Config{}) {
		t.Error("two temporary environments have one key")
	}
}

func TestAKeyIsNeverReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hunter2\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, keyName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		_, err := (&Environment{cfg: Config{Dir: dir}, dir: dir}).loadVault()

		after, readErr := os.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), keyName) || strings.Contains(err.Error(), "hunter2") || readErr != nil || string(after) != text {
			t.Errorf("a file that holds %q: %v, and now it holds %q", text, err, after)
		}
	}
}

// TestPasswordsOfMailAccountsHaveAKeyOfTheirOwn encrypts with the key of one
// environment, and decrypts with that of the next one in the same folder.
func TestPasswordsOfMailAccountsHaveAKeyOfTheirOwn(t *testing.T) {
	t.Parallel()
	kept := Config{Dir: t.TempDir()}
	tenant, box := envelope.TenantID(uuid.New()), uuid.New()
	cipher := func() account.Cipher {
		t.Helper()
		c, err := (&Environment{cfg: kept, dir: kept.Dir}).loadMailCipher()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	encrypted, err := cipher().Encrypt(tenant, box, "hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := (account.Account{ID: box, Tenant: tenant, Secret: encrypted}).Password(cipher(), os.LookupEnv, os.ReadFile); err != nil || text != "hunter2" {
		t.Errorf("the next environment decrypts %q, %v", text, err)
	}
	keys := map[string]string{}
	for _, name := range []string{keyName, mailKeyName} {
		if name == keyName {
			vaultOf(t, kept)
		}
		raw, err := os.ReadFile(filepath.Join(kept.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = string(raw)
	}
	if keys[keyName] == keys[mailKeyName] {
		t.Error("sources and mail accounts have one key")
	}
}
