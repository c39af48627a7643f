package connect

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Cipher encrypts the credentials of sources for storage and decrypts them in
// the worker. The zero value has no key, and does neither.
type Cipher struct {
	gcm cipher.AEAD
}

// NewCipher returns a Cipher with a key of 32 bytes in base64, the value of
// COUNTERSIGN_SECRET_KEY. An empty text gives a Cipher without a key.
func NewCipher(key string) (Cipher, error) {
	if key == "" {
		return Cipher{}, nil
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 32 {
		return Cipher{}, errors.New("COUNTERSIGN_SECRET_KEY must be 32 bytes in base64; make one with: openssl rand -base64 32")
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Cipher{}, err
	}
	gcm, err := cipher.NewGCM(block)
	return Cipher{gcm: gcm}, err
}

// Encrypt encrypts a secret for one source of one tenant. It cannot be decrypted
// for any other.
func (c Cipher) Encrypt(tenant envelope.TenantID, source string, secret []byte) ([]byte, error) {
	if c.gcm == nil {
		return nil, fault.New(fault.Conflict, "storing credentials needs COUNTERSIGN_SECRET_KEY to be set")
	}
	nonce := make([]byte, c.gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return c.gcm.Seal(nonce, nonce, secret, associatedData(tenant, source)), nil
}

// Decrypt decrypts the result of Encrypt.
func (c Cipher) Decrypt(tenant envelope.TenantID, source string, encrypted []byte) ([]byte, error) {
	if c.gcm == nil {
		return nil, errors.New("the source has credentials, and COUNTERSIGN_SECRET_KEY is not set")
	}
	n := c.gcm.NonceSize()
	if len(encrypted) < n {
		return nil, errors.New("the source's credentials are damaged")
	}
	secret, err := c.gcm.Open(nil, encrypted[:n], encrypted[n:], associatedData(tenant, source))
	if err != nil {
		return nil, errors.New("the source's credentials cannot be decrypted with this COUNTERSIGN_SECRET_KEY")
	}
	return secret, nil
}

func associatedData(tenant envelope.TenantID, source string) []byte {
	return []byte(tenant.String() + "/" + source)
}
