// Package encryption encrypts secrets for storage with AES-GCM. An encrypted
// secret is bound to a context, the name of its owner, and cannot be decrypted
// for another. The package is independent of the owners and of the origin of
// keys.
package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
)

// Errors of this package. Callers add the names of the key and the secret.
var (
	ErrNoKey   = errors.New("no key")
	ErrKey     = errors.New("a key must be 32 bytes in base64; make one with: openssl rand -base64 32")
	ErrDamaged = errors.New("the encrypted secret is damaged")
	ErrOther   = errors.New("the secret was encrypted with another key, or for something else")
)

// Key encrypts and decrypts. The zero value is invalid and does neither.
type Key struct {
	gcm cipher.AEAD
}

// Parse returns the key of 32 bytes in base64. An empty text gives no key.
func Parse(text string) (Key, error) {
	if text == "" {
		return Key{}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 32 {
		return Key{}, ErrKey
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Key{}, err
	}
	gcm, err := cipher.NewGCM(block)
	return Key{gcm}, err
}

// Encrypt encrypts a secret for a context.
func (k Key) Encrypt(context string, secret []byte) ([]byte, error) {
	if k.gcm == nil {
		return nil, ErrNoKey
	}
	nonce := make([]byte, k.gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return k.gcm.Seal(nonce, nonce, secret, []byte(context)), nil
}

// Decrypt decrypts the result of Encrypt for the same context.
func (k Key) Decrypt(context string, encrypted []byte) ([]byte, error) {
	if k.gcm == nil {
		return nil, ErrNoKey
	}
	n := k.gcm.NonceSize()
	if len(encrypted) < n {
		return nil, ErrDamaged
	}
	secret, err := k.gcm.Open(nil, encrypted[:n], encrypted[n:], []byte(context))
	if err != nil {
		return nil, ErrOther
	}
	return secret, nil
}
