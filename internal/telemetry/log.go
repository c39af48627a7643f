package telemetry

import (
	"io"
	"log/slog"
	"strings"
)

// hidden stands in logs where a secret was.
const hidden = "[REDACTED]"

// NewLogger returns a logger that writes one JSON object a line to w, at level
// and above. An attribute whose key SecretName knows is logged as
// "[REDACTED]", and so is everything in a group of such a name. Durations are
// logged in milliseconds, under a key that ends in _ms.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: replace}))
}

func replace(groups []string, attr slog.Attr) slog.Attr {
	if SecretName(attr.Key) {
		return slog.String(attr.Key, hidden)
	}
	for _, group := range groups {
		if SecretName(group) {
			return slog.String(attr.Key, hidden)
		}
	}
	if attr.Value.Kind() == slog.KindDuration {
		return slog.Float64(strings.TrimSuffix(attr.Key, "_ms")+"_ms", float64(attr.Value.Duration().Microseconds())/1000)
	}
	return attr
}
