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

// Vault seals the credentials of sources for storage and opens them in the
// worker. The zero value holds no key: it seals and opens nothing.
type Cipher struct {
	gcm cipher.AEAD
}

// NewVault takes a key of 32 bytes in base64, as COUNTERSIGN_SECRET_KEY holds
// it. An empty text gives a vault without a key.
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

// Seal encrypts a secret for one source of one tenant; it opens for no other.
func (v Cipher) Encrypt(tenant envelope.TenantID, source string, secret []byte) ([]byte, error) {
	if v.gcm == nil {
		return nil, fault.New(fault.Conflict, "storing credentials needs COUNTERSIGN_SECRET_KEY to be set")
	}
	nonce := make([]byte, v.gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return v.gcm.Seal(nonce, nonce, secret, sealedFor(tenant, source)), nil
}

// Open decrypts what Seal sealed.
func (v Cipher) Decrypt(tenant envelope.TenantID, source string, sealed []byte) ([]byte, error) {
	if v.gcm == nil {
		return nil, errors.New("the source has credentials, and COUNTERSIGN_SECRET_KEY is not set")
	}
	n := v.gcm.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("the source's credentials are damaged")
	}
	secret, err := v.gcm.Open(nil, sealed[:n], sealed[n:], sealedFor(tenant, source))
	if err != nil {
		return nil, errors.New("the source's credentials do not open with this COUNTERSIGN_SECRET_KEY")
	}
	return secret, nil
}

func sealedFor(tenant envelope.TenantID, source string) []byte {
	return []byte(tenant.String() + "/" + source)
}
