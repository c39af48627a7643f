package account

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/encryption"
	"github.com/countersign-dev/countersign/internal/fault"
)

// KeyVariable is the variable with the key for the passwords of mail accounts.
// It differs from the key for the credentials of sources.
const KeyVariable = "COUNTERSIGN_TRIAGE_KEY"

// maxSecret limits the bytes of a password or an access token.
const maxSecret = 8 << 10

// Cipher encrypts the passwords of accounts in api and decrypts them in triage.
// The zero value has no key and fails.
type Cipher struct {
	Key encryption.Key
}

// NewCipher returns a Cipher for a value of KeyVariable; "" returns one without
// a key.
func NewCipher(key string) (Cipher, error) {
	parsed, err := encryption.Parse(key)
	if err != nil {
		return Cipher{}, fmt.Errorf("%s: %w", KeyVariable, err)
	}
	return Cipher{Key: parsed}, nil
}

// Encrypt encrypts the password of an account. It cannot be decrypted for any
// other account.
func (c Cipher) Encrypt(tenant envelope.TenantID, account uuid.UUID, password string) ([]byte, error) {
	if err := checkSecret(password); err != nil {
		return nil, err
	}
	encrypted, err := c.Key.Encrypt(contextOf(tenant, account), []byte(password))
	if errors.Is(err, encryption.ErrNoKey) {
		return nil, fault.New(fault.Conflict, "storing a password needs %s to be set for api and triage; or leave the password out and set secret_from", KeyVariable)
	}
	return encrypted, err
}

func contextOf(tenant envelope.TenantID, account uuid.UUID) string {
	return "triage/" + tenant.String() + "/" + account.String()
}

func checkSecret(text string) error {
	if text == "" || len(text) > maxSecret || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("a password must be one line of 1 to %d bytes", maxSecret)
	}
	return nil
}

// Password returns the password for reading: from the variable or the file in
// SecretFrom, or decrypted; "" if the account has none. lookup and readFile are
// those of the triage process, the only caller. No error contains any of the
// password.
func (a Account) Password(c Cipher, lookup func(name string) (string, bool), readFile func(path string) ([]byte, error)) (string, error) {
	text, err := a.password(c, lookup, readFile)
	if err != nil {
		return "", fmt.Errorf("the password of the account %s: %w", a.Name, err)
	}
	return text, nil
}

func (a Account) password(c Cipher, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (string, error) {
	if name, ok := strings.CutPrefix(a.SecretFrom, "env:"); ok {
		text, set := lookup(name)
		if !set {
			return "", fmt.Errorf("the variable %s is not set for the triage process", name)
		}
		return text, checkSecret(text)
	}
	if path, ok := strings.CutPrefix(a.SecretFrom, "file:"); ok {
		raw, err := readFile(path)
		if err != nil {
			return "", fmt.Errorf("the file that secret_from names: %w", err)
		}
		text := strings.TrimRight(string(raw), "\r\n")
		return text, checkSecret(text)
	}
	if len(a.Secret) == 0 {
		return "", nil
	}
	raw, err := c.Key.Decrypt(contextOf(a.Tenant, a.ID), a.Secret)
	switch {
	case errors.Is(err, encryption.ErrNoKey):
		return "", fmt.Errorf("it is encrypted, and %s is not set", KeyVariable)
	case err != nil:
		return "", fmt.Errorf("it cannot be decrypted with this %s; set it again", KeyVariable)
	}
	return string(raw), nil
}
