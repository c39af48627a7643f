// Package redact removes secrets from results, errors and events, and truncates
// them to a size that fits in a row.
//
// It makes copies for readers. Tools are always called with the original
// arguments.
package redact

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

const (
	// maxNested is the maximum depth at which JSON within JSON strings is
	// decoded. Deeper JSON is treated as text.
	maxNested = 4
	// maxPlain is the length of a number up to which it surely fits the range of
	// envelope.Canonical: jsonb writes every digit of 1e8000.
	maxPlain = 100
)

// JSON returns a copy of a result, an error or an event that is safe to store
// and show. The values of names that telemetry.SecretName matches become
// "[REDACTED]", except nulls and booleans. In all other strings, also in JSON
// within strings, credentials are replaced as by Text. Order, numbers and white
// space stay. If there is nothing to redact, raw itself is returned.
//
// The result is valid JSON in UTF-8 that jsonb accepts: a NUL, half a surrogate
// pair and a number out of range are rewritten. A raw that is not JSON becomes a
// JSON string of its redacted text; an empty raw becomes null.
func JSON(raw json.RawMessage) json.RawMessage {
	if harmless(raw) {
		return raw
	}
	return redactJSON(asJSON(raw))
}

// JSONTruncated redacts raw, which came from outside, and truncates it to limit
// bytes. It redacts first, since half a credential is not recognized. The result
// passes the rules for all bodies (check.JSON): a value with a duplicate name,
// which readers would interpret differently, or with too much nesting becomes a
// JSON string of its text.
func JSONTruncated(raw json.RawMessage, limit int) json.RawMessage {
	if harmless(raw) {
		return raw
	}
	clean := redactJSON(asJSON(raw))
	if envelope.CheckJSON(clean, math.MaxInt) != nil {
		clean = []byte(quote(string(clean)))
	}
	return truncateJSON(clean, limit)
}

// harmless reports whether raw is a small value without anything to redact or
// cut.
func harmless(raw []byte) bool {
	switch string(raw) {
	case "{}", "[]", `""`, "null", "true", "false":
		return true
	}
	return false
}

func redactJSON(raw []byte) []byte {
	text := string(raw)
	clean := redactText(text, maxNested)
	if clean == text {
		return raw
	}
	return []byte(clean)
}

// redactText redacts valid JSON. nested is the depth to which JSON in strings is
// decoded.
func redactText(text string, nested int) string {
	r := redaction{scrub: scrub{in: text}, nested: nested}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = r.text(i)
		case c == '-' || isDigit(c):
			i = r.number(i)
		default:
			i++
		}
	}
	return r.result()
}

// redaction is a walk over valid JSON. A string is a name if and only if a colon
// follows, so the walk needs no stack.
type redaction struct {
	scrub
	nested int
}

// text redacts the string that begins at i and, if it is a secret's name, the
// value after it. It returns the end.
func (r *redaction) text(i int) int {
	end := stringEnd(r.in, i)
	next := skipSpace(r.in, end)
	if next == len(r.in) || r.in[next] != ':' {
		if clean := cleanString(r.in[i:end], r.nested); clean != r.in[i:end] {
			r.put(i, end, clean)
		}
		return end
	}

	name, _ := unquote(r.in[i:end])
	if clean := cleanString(r.in[i:end], 0); clean != r.in[i:end] {
		r.put(i, end, clean)
	}
	value := skipSpace(r.in, next+1)
	if !telemetry.SecretName(name) {
		return value
	}
	stop := valueEnd(r.in, value)
	switch r.in[value] {
	case 'n', 't', 'f':
	default:
		r.put(value, stop, `"`+redacted+`"`)
	}
	return stop
}

// number writes the number that begins at i as a string if it may be out of
// range for jsonb. It returns the end of the number.
func (r *redaction) number(i int) int {
	end := numberEnd(r.in, i)
	number := r.in[i:end]
	if (len(number) > maxPlain || strings.ContainsAny(number, "eE")) && envelope.CheckJSON([]byte(number), 1) != nil {
		r.put(i, end, `"`+number+`"`)
	}
	return end
}

// cleanString redacts one JSON string, including its quotes. It returns a clean
// string unchanged.
func cleanString(token string, nested int) string {
	s, repaired := unquote(token)
	clean := ""
	if nested > 0 && carriesJSON(s) {
		clean = redactText(s, nested-1)
	} else {
		clean = Text(s)
	}
	if clean == s && !repaired {
		return token
	}
	return quote(clean)
}

// carriesJSON reports whether a string contains a JSON object or array.
func carriesJSON(s string) bool {
	first := skipSpace(s, 0)
	return first < len(s) && (s[first] == '{' || s[first] == '[') && json.Valid([]byte(s))
}

// unquote returns the text of a JSON string, and whether characters that jsonb
// rejects were replaced.
func unquote(token string) (text string, repaired bool) {
	inner := token[1 : len(token)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, false
	}
	var decoded string // apart, so that only this path allocates
	if err := json.Unmarshal([]byte(token), &decoded); err != nil {
		return inner, false // not reached: the token is valid
	}
	return decoded, strings.Contains(inner, `\u`) && strings.ContainsAny(decoded, "\x00\uFFFD")
}
