package embedded

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// The salt, the password and the two keys of RFC 7677's example exchange, in
// PostgreSQL's notation; the keys follow from the proof and the signature
// that the RFC prints.
func TestScramVerifier(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}

	got, err := scramVerifier("pencil", bytes.NewReader(salt))

	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" +
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got != want || err != nil {
		t.Errorf("scramVerifier() = %q, %v, want %q, nil", got, err, want)
	}
}

func TestScramVerifierNeedsSalt(t *testing.T) {
	t.Parallel()
	if got, err := scramVerifier("pencil", bytes.NewReader(nil)); err == nil {
		t.Errorf("scramVerifier() without randomness = %q, want an error", got)
	}
}
