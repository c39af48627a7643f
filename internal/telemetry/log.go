package telemetry

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// hidden replaces a secret in logs.
const hidden = "[REDACTED]"

// NewLogger returns a logger that writes one JSON object per line to w, at level
// and above. An attribute whose key SecretName matches is logged as
// "[REDACTED]", and so is a whole group of such a name. Durations are logged in
// milliseconds, under a key that ends in _ms.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: replace}))
}

func replace(groups []string, attr slog.Attr) slog.Attr {
	if SecretName(attr.Key) {
		return slog.String(attr.Key, hidden)
	}
	if slices.ContainsFunc(groups, SecretName) {
		return slog.String(attr.Key, hidden)
	}
	if attr.Value.Kind() == slog.KindDuration {
		return slog.Float64(strings.TrimSuffix(attr.Key, "_ms")+"_ms", float64(attr.Value.Duration().Microseconds())/1000)
	}
	return attr
}

// WithoutRepeats returns a handler that logs each message at most once per
// interval, by the times of the records. A record after suppressed ones has
// their number in the attribute repeated. It is for components that report one
// outage again and again.
func WithoutRepeats(handler slog.Handler, interval time.Duration) slog.Handler {
	return repeatHandler{handler, &repeats{interval: interval, messages: map[string]repeat{}}}
}

type repeatHandler struct {
	slog.Handler
	seen *repeats
}

// repeats is shared by all handlers derived from one WithoutRepeats.
type repeats struct {
	interval time.Duration
	mu       sync.Mutex
	messages map[string]repeat
}

type repeat struct {
	logged time.Time
	count  int
}

// maxMessages bounds the number of remembered messages.
const maxMessages = 1000

// add reports whether to log a message, and the number of repeats that were
// suppressed before.
func (r *repeats) add(message string, at time.Time) (log bool, leftOut int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.messages[message]
	if known && at.Sub(last.logged) < r.interval {
		last.count++
		r.messages[message] = last
		return false, 0
	}
	if len(r.messages) >= maxMessages {
		clear(r.messages)
	}
	r.messages[message] = repeat{logged: at}
	return true, last.count
}

// Handle logs the record unless its message was logged within the interval.
func (h repeatHandler) Handle(ctx context.Context, record slog.Record) error {
	log, leftOut := h.seen.add(record.Message, record.Time)
	if !log {
		return nil
	}
	if leftOut > 0 {
		record = record.Clone()
		record.AddAttrs(slog.Int("repeated", leftOut))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs returns a handler that shares the record of repeats.
func (h repeatHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return repeatHandler{h.Handler.WithAttrs(attrs), h.seen}
}

// WithGroup returns a handler that shares the record of repeats.
func (h repeatHandler) WithGroup(name string) slog.Handler {
	return repeatHandler{h.Handler.WithGroup(name), h.seen}
}

// maxSecretName is the number of letters and digits at the end of a name that
// are compared. No known name is longer.
const maxSecretName = 48

// SecretName reports whether a field, header, variable or parameter of this name
// holds a credential. Case and separators are ignored: api_key, X-API-Key and
// apiKey are one name. A name with a secret suffix matches (github_token,
// DB_PASSWORD), except cursors of lists.
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

// secretPlain reports whether a name of lower-case letters and digits is secret.
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

// secretShort reports whether a name has a secret suffix after a separator:
// DB_PASS matches, COMPASS and PWD do not.
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
