package message

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// CallID returns the Message-ID of the mail that a call writes for an account, without
// angle brackets. It is the same for every attempt, and nobody guesses it who does not
// have the key of the call.
func CallID(key, account, from string) string {
	sum := sha256.Sum256([]byte("countersign draft\x00" + account + "\x00" + key))
	_, domain, ok := strings.Cut(from, "@")
	if !ok {
		domain = "draft.invalid"
	}
	return hex.EncodeToString(sum[:16]) + "@" + domain
}
