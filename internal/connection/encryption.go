package connection

import (
	"errors"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/encryption"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Cipher encrypts the credentials of sources for storage and decrypts them in
// the worker. The zero value has no key and does neither.
type Cipher struct {
	key encryption.Key
}

// NewCipher returns a Cipher with a key of 32 bytes in base64, the value of
// COUNTERSIGN_SECRET_KEY. An empty text returns a Cipher without a key.
func NewCipher(key string) (Cipher, error) {
	parsed, err := encryption.Parse(key)
	if err != nil {
		return Cipher{}, errors.New("COUNTERSIGN_SECRET_KEY must be 32 bytes in base64; make one with: openssl rand -base64 32")
	}
	return Cipher{parsed}, nil
}

// HasKey reports whether the cipher has a key.
func (c Cipher) HasKey() bool { return c.key != encryption.Key{} }

// Encrypt encrypts a secret for one source of one tenant. It cannot be decrypted
// for any other.
func (c Cipher) Encrypt(tenant envelope.TenantID, source string, secret []byte) ([]byte, error) {
	encrypted, err := c.key.Encrypt(contextOf(tenant, source), secret)
	if errors.Is(err, encryption.ErrNoKey) {
		return nil, fault.New(fault.Conflict, "storing credentials needs COUNTERSIGN_SECRET_KEY to be set")
	}
	return encrypted, err
}

// Decrypt decrypts the result of Encrypt.
func (c Cipher) Decrypt(tenant envelope.TenantID, source string, encrypted []byte) ([]byte, error) {
	secret, err := c.key.Decrypt(contextOf(tenant, source), encrypted)
	switch {
	case errors.Is(err, encryption.ErrNoKey):
		return nil, errors.New("the source has credentials, and COUNTERSIGN_SECRET_KEY is not set")
	case errors.Is(err, encryption.ErrDamaged):
		return nil, errors.New("the source's credentials are damaged")
	case err != nil:
		return nil, errors.New("the source's credentials cannot be decrypted with this COUNTERSIGN_SECRET_KEY")
	}
	return secret, nil
}

func contextOf(tenant envelope.TenantID, source string) string { return tenant.String() + "/" + source }
