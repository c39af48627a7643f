package telemetry

import "strings"

// maxSecretName is how many letters and digits at the end of a name are compared,
// more than any known name has.
const maxSecretName = 48

// SecretName reports whether a field, header, variable or parameter of this
// name holds a credential. Case and separators do not matter: api_key,
// X-API-Key and apiKey are one name. A name that ends like a secret is one
// (github_token, DB_PASSWORD), except cursors of lists.
func SecretName(name string) bool {
	if len(name) < 3 {
		return false
	}
	var buf [maxSecretName]byte
	at := len(buf)
	for i := len(name) - 1; i >= 0 && at > 0; i-- {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			at--
			buf[at] = c
		}
	}
	return secretPlain(string(buf[at:])) || secretShort(name)
}

// secretPlain reports whether a name in lower-case letters and digits is secret.
func secretPlain(plain string) bool {
	switch plain {
	case "secrets", "passwords", "cookies", "credentials", "bearer", "jwt", "passphrase",
		"sig", "xamzsignature", "xamzcredential", "connectionstring":
		return true
	case "pagetoken", "nextpagetoken", "prevpagetoken", "nexttoken", "continuationtoken", "cursortoken",
		"synctoken", "nextsynctoken", "deltatoken", "pagingtoken", "progresstoken":
		return false
	}
	for _, end := range [...]string{
		"token", "secret", "password", "passwd", "authorization", "apikey", "privatekey", "secretkey",
		"accesskey", "signingkey", "encryptionkey", "passphrase", "cookie", "credential", "credentials",
	} {
		if strings.HasSuffix(plain, end) {
			return true
		}
	}
	return false
}

// secretShort reports whether a name ends like a secret after a separator: DB_PASS
// does, COMPASS and PWD do not.
func secretShort(name string) bool {
	if len(name) < 5 {
		return false
	}
	switch end := name[len(name)-5:]; end[0] {
	case '_', '-', '.':
		return strings.EqualFold(end[1:], "pass")
	}
	switch end := name[len(name)-4:]; end[0] {
	case '_', '-', '.':
		return strings.EqualFold(end[1:], "pwd")
	}
	return false
}
