package dev

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/internal/source/connect"
)

// keyName is the file of the key that encrypts the credentials of sources.
const keyName = "secret.key"

// loadVault returns the vault that encrypts credentials, with the configured
// key, else the key in Dir, else a new key, which is written there.
func (e *Environment) loadVault() (connect.Cipher, error) {
	if e.cfg.SecretKey != "" {
		return connect.NewCipher(e.cfg.SecretKey)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	key := base64.StdEncoding.EncodeToString(raw)
	if e.cfg.Dir == "" {
		return connect.NewCipher(key)
	}
	path := filepath.Join(e.dir, keyName)
	kept, err := os.ReadFile(path)
	switch {
	case err == nil:
		key = strings.TrimSpace(string(kept))
	case errors.Is(err, fs.ErrNotExist):
		err = writeSecret(path, []byte(key))
	}
	if err != nil {
		return connect.Cipher{}, fmt.Errorf("the key that encrypts credentials: %w", err)
	}
	vault, err := connect.NewCipher(key)
	if err != nil || key == "" {
		return connect.Cipher{}, fmt.Errorf("%s holds no key; put back the one that it held, or remove it and give all credentials again", path)
	}
	return vault, nil
}

// writeSecret writes a file at once that only its owner can read.
func writeSecret(path string, text []byte) error {
	draft := path + ".new"
	if err := os.WriteFile(draft, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
