// Package redact owns what may be kept of the values that pass through: it
// replaces secrets in results, errors and events, and truncates them to a size
// that a row can hold.
//
// It does not touch what is sent to a tool. Redaction and truncation make a
// copy for readers; an action is always executed from the original.
package redact

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

const (
	// maxNested is how many times JSON inside a JSON string is opened. What is
	// wrapped deeper is read as text.
	maxNested = 4
	// maxPlain is how many characters a number may have that is surely not
	// beyond what envelope.Canonical takes: jsonb writes every digit of 1e8000.
	maxPlain = 100
)

// JSON returns a copy of a result, an error or an event that is fit to be
// stored and shown. The values of names that telemetry.SecretName knows
// become "[REDACTED]", whatever they are, save nulls and booleans, which tell
// nothing. In every other string what looks like a credential is replaced as
// Text does, also in JSON that the string carries. Order, numbers and
// white space stay. With nothing to redact, raw itself is returned.
//
// What comes out is valid JSON in UTF-8 that jsonb takes: a NUL, half a
// surrogate pair and a number beyond its range are rewritten. A raw that is
// no JSON becomes a JSON string of its redacted text, an empty one null.
func JSON(raw json.RawMessage) json.RawMessage {
	if harmless(raw) {
		return raw
	}
	return redactJSON(asJSON(raw))
}

// JSONTruncated returns what is kept of raw, which came from outside: redacted
// first, then cut to limit bytes. The order matters, since half a credential is
// not known as one. What is kept passes the rules of every body (check.JSON): a
// value in which an object has a name twice, of which readers would take one or
// the other, or that is nested too deeply, becomes a JSON string of its text.
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

// harmless reports whether raw is one of the values so small that there is
// nothing to redact or cut.
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

// redactText redacts valid JSON, and opens JSON in strings so many times.
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

// redaction is a walk over valid JSON. A string in it is a name if and only if
// a colon follows, so that the walk needs no stack.
type redaction struct {
	scrub
	nested int
}

// text redacts the string that begins at i and, if it is a secret's name, the
// value after it. It returns where to go on.
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

// number makes a string of the number that begins at i if jsonb might not
// hold it, and returns where the number ends.
func (r *redaction) number(i int) int {
	end := numberEnd(r.in, i)
	number := r.in[i:end]
	if (len(number) > maxPlain || strings.ContainsAny(number, "eE")) && envelope.CheckJSON([]byte(number), 1) != nil {
		r.put(i, end, `"`+number+`"`)
	}
	return end
}

// cleanString redacts one JSON string, quotes included. A string that is
// clean comes back as it is.
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

// carriesJSON reports whether a string holds a JSON object or array.
func carriesJSON(s string) bool {
	first := skipSpace(s, 0)
	return first < len(s) && (s[first] == '{' || s[first] == '[') && json.Valid([]byte(s))
}

// unquote returns the text of a JSON string, and whether it held something
// that jsonb does not take.
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
