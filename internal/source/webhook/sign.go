package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The bounds of a signing secret, in bytes, and what its text begins with.
const (
	minSecret    = 24
	maxSecret    = 64
	secretPrefix = "whsec_"
)

// CheckSecret says what is wrong with the text of a signing secret, as
// fault.Invalid without repeating it.
func CheckSecret(text string) error {
	_, err := parseSecret(text)
	return err
}

func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, fault.New(fault.Invalid, "a signing secret is whsec_ and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)")
	}
	return key, nil
}

// signer signs with every secret that a receiver may know. Printed, it is the
// address of a function.
type signer struct{ macs func(content string) [][]byte }

func newSigner(secrets []rest.Secret) (signer, error) {
	if len(secrets) == 0 {
		return signer{}, fault.New(fault.Invalid, "needs a signing secret")
	}
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		var err error
		if keys[i], err = parseSecret(s.Reveal()); err != nil {
			return signer{}, err
		}
	}
	return signer{func(content string) [][]byte {
		sums := make([][]byte, len(keys))
		for i, key := range keys {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(content))
			sums[i] = mac.Sum(nil)
		}
		return sums
	}}, nil
}

// header is the value of webhook-signature: one signature for each secret,
// with a space between.
func (s signer) header(id string, at time.Time, body []byte) string {
	var signatures []string
	for _, sum := range s.macs(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + string(body)) {
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(sum))
	}
	return strings.Join(signatures, " ")
}
