package contact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Limits of recipient patterns.
const (
	// MaxPatterns is the maximum number of patterns of a tool.
	MaxPatterns = 20
	// MaxPatternLength is the maximum length of a pattern, in bytes.
	MaxPatternLength = 200
)

// wildcard matches every element of a list or member of an object.
const wildcard = "*"

// Pattern selects the recipients in a tool's arguments: an RFC 6901 JSON Pointer
// in which a segment * matches every element of an array or every member of an
// object, as in /to/* or /message/channel.
type Pattern struct {
	text     string
	segments []string // unescaped
}

// ParsePattern parses a pattern. The error is fault.Invalid.
func ParsePattern(text string) (Pattern, error) {
	if problem := patternProblem(text); problem != "" {
		return Pattern{}, fault.New(fault.Invalid, "recipient pattern %s", problem)
	}
	segments := strings.Split(text[1:], "/")
	for i, s := range segments {
		segments[i] = envelope.UnescapePointer(s)
	}
	return Pattern{text, segments}, nil
}

// patternProblem returns the error in a pattern, or "".
func patternProblem(text string) string {
	switch {
	case text == "":
		return "must not be empty; write /* for every argument"
	case len(text) > MaxPatternLength:
		return "must be at most 200 bytes long"
	case !utf8.ValidString(text):
		return "must be UTF-8"
	case text[0] != '/':
		return "must begin with a slash, such as /to/*"
	}
	for segment := range strings.SplitSeq(text[1:], "/") {
		if segment != wildcard && strings.Contains(segment, wildcard) {
			return "may have a star only as a whole segment, such as /to/*"
		}
	}
	for _, rest := range strings.Split(text, "~")[1:] {
		if !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "1") {
			return "must write a tilde as ~0 and a slash within a name as ~1"
		}
	}
	return ""
}

// ParsePatterns parses a tool's patterns. The error is an *envelope.InvalidError
// with pointers relative to the list: /0 is the first.
func ParsePatterns(texts []string) ([]Pattern, error) {
	if len(texts) > MaxPatterns {
		return nil, check.Invalid("", envelope.RuleMaxItems, "must be at most 20 recipient patterns")
	}
	var problems check.Problems
	var list []Pattern
	for i, text := range texts {
		p, err := ParsePattern(text)
		at := fmt.Sprintf("/%d", i)
		if err != nil {
			problems.Add(at, envelope.RulePattern, "%s", patternProblem(text))
		} else if slices.Contains(texts[:i], text) {
			problems.Add(at, check.RuleDuplicate, "must not repeat a pattern above it")
		}
		list = append(list, p)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// String returns the original text of the pattern.
func (p Pattern) String() string { return p.text }

// Find returns the values that match the patterns, without duplicates, in the
// order of the patterns and within one by name and index. They are strings, and
// numbers in the form in which they are dialed. For an array or object
// everything within it is returned, including names of members unless they are
// plain words. A string or number on the path is also returned, since many tools
// accept a single value in place of a list. Invalid JSON is returned as one
// value, so that malformed arguments are checked too.
func Find(args json.RawMessage, patterns []Pattern) []string {
	if len(patterns) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil || dec.More() {
		return []string{string(args)}
	}
	f := finder{seen: map[string]struct{}{}}
	for _, p := range patterns {
		f.follow(doc, p.segments)
	}
	return f.values
}

// finder collects values.
type finder struct {
	seen   map[string]struct{}
	values []string
}

func (f *finder) follow(node any, segments []string) {
	if len(segments) == 0 {
		f.take(node)
		return
	}
	name, rest := segments[0], segments[1:]
	switch node := node.(type) {
	case map[string]any:
		if name != wildcard {
			if child, ok := node[name]; ok {
				f.follow(child, rest)
			}
			return
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if len(rest) == 0 {
				f.name(key)
			}
			f.follow(node[key], rest)
		}
	case []any:
		if name != wildcard {
			if i, err := strconv.Atoi(name); err == nil && strconv.Itoa(i) == name && i >= 0 && i < len(node) {
				f.follow(node[i], rest)
			}
			return
		}
		for _, child := range node {
			f.follow(child, rest)
		}
	case string, json.Number:
		f.take(node)
	}
}

// take adds a value and everything within it.
func (f *finder) take(node any) {
	switch node := node.(type) {
	case string:
		f.add(node)
	case json.Number:
		f.add(plainNumber(node.String()))
	case []any:
		for _, child := range node {
			f.take(child)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			f.name(key)
			f.take(node[key])
		}
	}
}

// name adds a member's name if it may itself be an address, as in
// {"ana@example.org": {...}}.
func (f *finder) name(key string) {
	plain := key != "" && !strings.ContainsRune("0123456789", rune(key[0]))
	for _, r := range key {
		plain = plain && (r == '_' || r == '-' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	}
	if !plain {
		f.add(key)
	}
}

func (f *finder) add(value string) {
	if _, old := f.seen[value]; value == "" || old {
		return
	}
	f.seen[value] = struct{}{}
	f.values = append(f.values, value)
}

// plainNumber returns a whole number without exponent or fraction, if it has as
// many digits as a phone number.
func plainNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	const exact = 1 << 53
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n > exact || n < -exact || n != math.Trunc(n) {
		return text
	}
	return strconv.FormatInt(int64(n), 10)
}

// Selects reports whether the pattern selects the value at a place, or one that
// contains it. The place has the names of members and the indexes of elements.
func (p Pattern) Selects(place []string) bool {
	at := 0
	for _, segment := range p.segments {
		for at < len(place) && segment != wildcard && segment != place[at] {
			return false
		}
		if at == len(place) {
			return segment == wildcard && at > 0 // a single value in place of a list
		}
		at++
	}
	return true
}
