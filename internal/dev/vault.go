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

// keyName is the file of the key that seals the credentials of sources.
const keyName = "secret.key"

// openVault returns what seals credentials: by the key that was given, or else
// by the one of the last time, or else by a new one that is kept for the next.
func (h *House) openVault() (connect.Vault, error) {
	if h.cfg.SecretKey != "" {
		return connect.NewVault(h.cfg.SecretKey)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	key := base64.StdEncoding.EncodeToString(raw)
	if h.cfg.Dir == "" {
		return connect.NewVault(key)
	}
	path := filepath.Join(h.dir, keyName)
	kept, err := os.ReadFile(path)
	switch {
	case err == nil:
		key = strings.TrimSpace(string(kept))
	case errors.Is(err, fs.ErrNotExist):
		err = keep(path, []byte(key))
	}
	if err != nil {
		return connect.Vault{}, fmt.Errorf("the key that seals credentials: %w", err)
	}
	vault, err := connect.NewVault(key)
	if err != nil || key == "" {
		return connect.Vault{}, fmt.Errorf("%s holds no key; put back the one that it held, or remove it and give all credentials again", path)
	}
	return vault, nil
}

// keep writes a file whole that only its owner can read.
func keep(path string, text []byte) error {
	draft := path + ".new"
	if err := os.WriteFile(draft, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
