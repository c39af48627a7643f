package redact

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

// Redacted replaces a secret.
const Redacted = "[REDACTED]"

const redacted = Redacted

const (
	// minBareSecret is the minimum length of a credential after a provider's
	// prefix. Shorter ones are words.
	minBareSecret = 12
	// minSchemeSecret is the minimum length of a credential after Bearer or
	// Basic.
	minSchemeSecret = 8
	// minUserSecret is the minimum length of a URL's user, without a password,
	// that is treated as a token.
	minUserSecret = 20

	digits   = "0123456789"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Text redacts credentials in text for people, such as an error message: bearer
// and basic credentials, JSON web tokens, tokens with a provider's prefix,
// private keys in PEM, passwords in URLs, and the values of names that
// SecretName matches, as in token=…, "password": "…" or a Cookie header. The
// rest stays. Text is idempotent.
func Text(s string) string {
	t := scrub{in: s}
	t.run()
	return t.result()
}

// scrub scans a text once. It copies the text only after the first cut.
type scrub struct {
	in   string
	out  strings.Builder
	kept int // in[:kept] is in out, or was cut
	cuts int
}

func (t *scrub) result() string {
	if t.cuts == 0 {
		return t.in
	}
	t.out.WriteString(t.in[t.kept:])
	return t.out.String()
}

// cut removes in[from:to] and returns to.
func (t *scrub) cut(from, to int) int {
	if from < to {
		t.put(from, to, redacted)
	}
	return to
}

// put replaces in[from:to] by with.
func (t *scrub) put(from, to int, with string) {
	t.out.WriteString(t.in[t.kept:from])
	t.out.WriteString(with)
	t.kept = to
	t.cuts++
}

func (t *scrub) run() {
	for i := 0; i < len(t.in); {
		switch c := t.in[i]; {
		case wordByte(c):
			i = t.word(i)
		case c == ':' && strings.HasPrefix(t.in[i:], "://"):
			i = t.authority(i + len("://"))
		default:
			i++
		}
	}
}

// word redacts the word that begins at i and returns the next index.
func (t *scrub) word(i int) int {
	end := i
	for end < len(t.in) && wordByte(t.in[end]) {
		end++
	}
	if end-i < 3 {
		return end
	}
	for start := i; start <= i+1; start++ {
		// In doubly escaped text, \n is attached to the word.
		if start > i && (i == 0 || t.in[i-1] != '\\') {
			break
		}
		if stop := t.credential(start, end); stop > 0 {
			return t.cut(start, stop)
		}
		if stop := t.scheme(start, end); stop > 0 {
			return stop
		}
	}
	if telemetry.SecretName(t.in[i:end]) {
		return t.assignment(i, end)
	}
	return end
}

// credential returns the end of the credential that begins at i, or 0. The word
// ends at end; only a private key continues after it.
func (t *scrub) credential(i, end int) int {
	word := t.in[i:end]
	switch word[0] {
	case '-':
		if strings.HasPrefix(word, "-----BEGIN") {
			return t.pem(i)
		}
		return 0
	case 'e':
		if jsonWebToken(word) {
			return end
		}
	}
	if prefix := prefixOf(word); prefix != "" && secretTail(prefix, word[len(prefix):]) {
		return end
	}
	return 0
}

// prefixes are the prefixes of providers' credentials.
var prefixes = [...]string{
	"sk-", "sk_live_", "sk_test_", "shpat_", "sntrys_", "sntryu_", "rk_live_", "rk_test_",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
	"xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-",
	"AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-", "hf_", "lin_api_", "lin_oauth_", "SG.", "dop_v1_", "whsec_",
}

// prefixOf returns the provider's prefix of a word, or "".
func prefixOf(word string) string {
	for _, prefix := range prefixes {
		if word[0] == prefix[0] && strings.HasPrefix(word, prefix) {
			return prefix
		}
	}
	return ""
}

// secretTail reports whether the text after a prefix is a credential. After a
// prefix that also begins ordinary words, it must contain a digit.
func secretTail(prefix, tail string) bool {
	if len(tail) < minBareSecret {
		return false
	}
	switch prefix {
	case "sk-", "npm_", "pypi-", "hf_", "SG.":
		return strings.ContainsAny(tail, digits)
	}
	return true
}

// jsonWebToken reports whether a word is a signed or encrypted token: at least a
// header and a payload in base64url, the header beginning with {".
func jsonWebToken(word string) bool {
	if !strings.HasPrefix(word, "eyJ") {
		return false
	}
	header, rest, found := strings.Cut(word, ".")
	return found && len(header) >= 10 && len(rest) >= 8
}

// pem returns the end of the PEM block that begins at i, or 0 if it is public.
// An unterminated block extends to the end of the text.
func (t *scrub) pem(i int) int {
	label, _, _ := strings.Cut(t.in[i+len("-----BEGIN"):], "-----")
	if len(label) > 64 {
		label = ""
	}
	for _, public := range [...]string{"CERTIFICATE", "CERTIFICATE REQUEST", "PUBLIC KEY"} {
		if strings.HasSuffix(label, public) {
			return 0
		}
	}
	_, rest, _ := strings.Cut(t.in[i:], "-----END")
	_, rest, _ = strings.Cut(rest, "-----")
	return len(t.in) - len(rest)
}

// scheme redacts the credential after Bearer or Basic. It returns 0 if in[i:end]
// is neither, or if no credential follows.
func (t *scrub) scheme(i, end int) int {
	basic := strings.EqualFold(t.in[i:end], "basic")
	if !basic && !strings.EqualFold(t.in[i:end], "bearer") {
		return 0
	}
	start := t.skip(end, " \t+")
	stop := start
	for stop < len(t.in) && (wordByte(t.in[stop]) || strings.IndexByte("+/=~", t.in[stop]) >= 0) {
		stop++
	}
	if start == end || stop-start < minSchemeSecret || prose(basic, t.in[start:stop]) {
		return 0
	}
	return t.cut(start, stop)
}

// prose reports whether the word after a scheme is ordinary text rather than a
// credential.
func prose(basic bool, next string) bool {
	if basic {
		return !strings.ContainsAny(next[1:], digits+capitals+"=")
	}
	words := []string{"authentication", "authorization", "certificate", "credential", "credentials"}
	return slices.Contains(words, strings.ToLower(strings.TrimRight(next, ".")))
}

// assignment redacts the value of the secret name in[i:end] in name=value, name:
// value or "name": "value".
func (t *scrub) assignment(i, end int) int {
	at := t.quoteAfter(end)
	at = t.skip(at, " \t")
	if at == len(t.in) || t.in[at] != '=' && t.in[at] != ':' {
		return end
	}
	at++
	if at < len(t.in) && (t.in[at] == '=' || t.in[at] == '>') {
		if t.in[at] == '=' {
			return end // a comparison
		}
		at++
	}
	at = t.skip(at, " \t")
	start := t.quoteAfter(at)
	if strings.HasPrefix(t.in[start:], redacted) {
		return start + len(redacted)
	}
	stop := t.valueEnd(i, end, at, start)
	switch t.in[start:stop] {
	case "", "null", "true", "false", "undefined":
		return start
	}
	return t.cut(start, stop)
}

// valueEnd returns the end of the value that begins at start: at the quote that
// in[quote:start] opened, at the end of the line for a header of several words,
// else at the first space or punctuation mark.
func (t *scrub) valueEnd(name, nameEnd, quote, start int) int {
	if opened := t.in[quote:start]; opened != "" {
		return t.closing(start, opened)
	}
	marks := " \t\r\n&,;\"'`<>)]}\\"
	if wordyHeader(t.in[name:nameEnd]) {
		marks = "\r\n\"'`\\"
	}
	if n := strings.IndexAny(t.in[start:], marks); n >= 0 {
		return start + n
	}
	return len(t.in)
}

// closing returns the end of the quotation that opened just before start.
func (t *scrub) closing(start int, opened string) int {
	if len(opened) > 1 { // escaped: \"
		value, _, _ := strings.Cut(t.in[start:], opened)
		return start + len(value)
	}
	for i := start; i < len(t.in); i++ {
		switch t.in[i] {
		case '\\':
			i++
		case opened[0]:
			return i
		}
	}
	return len(t.in)
}

// wordyHeader reports whether a header's value may contain spaces.
func wordyHeader(name string) bool {
	for _, header := range [...]string{"authorization", "cookie"} {
		if len(name) >= len(header) && strings.EqualFold(name[len(name)-len(header):], header) {
			return true
		}
	}
	return false
}

// authority redacts the password of a URL whose authority begins at i, and the
// secret path of a Slack webhook.
func (t *scrub) authority(i int) int {
	end := len(t.in)
	if n := strings.IndexAny(t.in[i:], "/?# \t\r\n\"'`<>\\"); n >= 0 {
		end = i + n
	}
	authority := t.in[i:end]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		colon := strings.IndexByte(authority[:at], ':')
		if secret := authority[colon+1 : at]; secret != redacted && (colon >= 0 || len(secret) >= minUserSecret) {
			return t.cut(i+colon+1, i+at)
		}
	}
	const path = "/services/"
	if authority == "hooks.slack.com" && strings.HasPrefix(t.in[end:], path) {
		stop := end + len(path)
		for stop < len(t.in) && (wordByte(t.in[stop]) || t.in[stop] == '/') {
			stop++
		}
		return t.cut(end+len(path), stop)
	}
	return i
}

// quoteAfter returns the index after a quote at i, escaped or not, or i.
func (t *scrub) quoteAfter(i int) int {
	if i < len(t.in) && strings.IndexByte("\"'`", t.in[i]) >= 0 {
		return i + 1
	}
	if i+1 < len(t.in) && t.in[i] == '\\' && t.in[i+1] == '"' {
		return i + 2
	}
	return i
}

// skip returns the first index at or after i whose byte is not in set.
func (t *scrub) skip(i int, set string) int {
	for i < len(t.in) && strings.IndexByte(set, t.in[i]) >= 0 {
		i++
	}
	return i
}

// wordByte reports whether c may be part of a name or a token.
func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}
