package rest

import "golang.org/x/net/http/httpguts"

// Secret is a credential. However a value that holds one is printed, logged or
// written as JSON, the text does not show: only Reveal gives it. The zero
// Secret is empty.
type Secret struct {
	// A function prints as an address, wherever reflection finds it.
	text func() string
}

// NewSecret returns a Secret of a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: func() string { return text }}
}

// NewSecrets returns the values of a map as Secrets.
func NewSecrets(texts map[string]string) map[string]Secret {
	secrets := make(map[string]Secret, len(texts))
	for name, text := range texts {
		secrets[name] = NewSecret(text)
	}
	return secrets
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return s.text()
}

// FitsHeader reports whether the text can be sent in a header.
func (s Secret) FitsHeader() bool { return httpguts.ValidHeaderFieldValue(s.Reveal()) }

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.text == nil }
