package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DefaultLimit is the default size of a stored result, in bytes.
const DefaultLimit = 10 * 1024

// MinLimit is the smallest limit. Less has hardly space for more than the marks.
const MinLimit = 256

const (
	// maxDepth is the maximum nesting of a result, as of any body. PostgreSQL
	// parses JSON recursively and rejects much deeper values.
	maxDepth = 128
	// maxCutDepth is the depth to which containers are truncated rather than
	// dropped.
	maxCutDepth = 32
	// minContainer is the minimum size of a truncated container, in bytes. With
	// less space it becomes an ellipsis.
	minContainer = 48
	// minPart is the minimum size of a part: an ellipsis and a little.
	minPart = 16

	ellipsis = `"…"`
)

// Names of the marks. A truncated object omits its own members of these names.
const (
	markTruncated = "_truncated"
	markSize      = "_original_size"
	markKeys      = "_omitted_keys"
	markItems     = "_omitted_items"
)

// Truncate returns valid JSON of at most limit bytes, or MinLimit if that is
// larger. A value that fits is returned unchanged. Otherwise the result is an
// object with "_truncated": true, "_original_size" in bytes, and as much of the
// beginning as fits: the members of an object next to the marks, the elements of
// an array under "items", a string under "text".
//
// Within a value, small parts stay whole and large ones share the rest, so that
// one large part does not displace the others. A string is cut between
// characters and ends with the number of missing bytes. An object has the number
// of "_omitted_keys", an array the number of "_omitted_items". The order stays.
// A raw that is not JSON is treated as a JSON string of its text.
func Truncate(raw json.RawMessage, limit int) json.RawMessage {
	if harmless(raw) {
		return raw
	}
	return truncateJSON(asJSON(raw), limit)
}

func truncateJSON(raw []byte, limit int) []byte {
	limit = max(limit, MinLimit)
	text := string(raw)
	if fits(text, limit) {
		return raw
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // raw is valid
	text = compact.String()
	if fits(text, limit) {
		return compact.Bytes()
	}

	c := cutter{out: make([]byte, 0, limit)}
	c.add(`{"`+markTruncated+`":true,"`+markSize+`":`, strconv.Itoa(len(raw)))
	switch text[0] {
	case '{':
		omitted := c.parts(text, limit-len(c.out)-c.markSpace(text), maxCutDepth)
		c.mark(markKeys, omitted)
	case '[':
		c.add(`,"items":[`)
		omitted := c.parts(text, limit-len(c.out)-len("]")-c.markSpace(text), maxCutDepth)
		c.add("]")
		c.mark(markItems, omitted)
	default:
		c.add(`,"text":`)
		c.value(text, limit-len(c.out)-len("}"), maxCutDepth)
	}
	c.add("}")
	return c.out
}

func fits(text string, limit int) bool { return len(text) <= limit && !deeper(text, maxDepth) }

// cutter writes the beginning of compact JSON within a budget of bytes.
type cutter struct{ out []byte }

func (c *cutter) add(texts ...string) {
	for _, text := range texts {
		c.out = append(c.out, text...)
	}
}

// separate writes a comma, except at the beginning of a container.
func (c *cutter) separate() {
	if last := c.out[len(c.out)-1]; last != '{' && last != '[' {
		c.add(",")
	}
}

// mark writes the number of omitted parts, if any.
func (c *cutter) mark(name string, omitted int) {
	if omitted > 0 {
		c.separate()
		c.add(`"`, name, `":`, strconv.Itoa(omitted))
	}
}

// markSpace returns the bytes that a container reserves for a mark about text
// and for its own end.
func (c *cutter) markSpace(text string) int {
	return len(`,{"":}]`) + len(markItems) + len(strconv.Itoa(len(text)))
}

// value writes text in at most budget bytes. The budget has space for at least
// text or an ellipsis.
func (c *cutter) value(text string, budget, depth int) {
	switch {
	case fits(text, budget):
		c.add(text)
	case text[0] == '"':
		c.string(text, budget)
	case (text[0] == '{' || text[0] == '[') && budget >= minContainer && depth > 0:
		c.container(text, budget, depth)
	default:
		c.add(ellipsis)
	}
}

// container writes the beginning of an object or array.
func (c *cutter) container(text string, budget, depth int) {
	c.add(text[:1])
	omitted := c.parts(text, budget-len("{")-c.markSpace(text), depth)
	if text[0] == '{' {
		c.mark(markKeys, omitted)
		c.add("}")
		return
	}
	if omitted > 0 {
		c.separate()
		c.add("{")
		c.mark(markItems, omitted)
		c.add("}")
	}
	c.add("]")
}

// string writes the beginning of a string, cut between characters, and the
// number of missing bytes.
func (c *cutter) string(token string, budget int) {
	const before, after = "…[", " bytes more]"
	space := budget - len(before) - len(after) - len(strconv.Itoa(len(token))) - len(`""`)
	end := 1
	for end < len(token)-1 {
		next := end + unit(token[end:])
		if next-1 > space {
			break
		}
		end = next
	}
	if end == 1 {
		c.add(ellipsis)
		return
	}
	c.add(token[:end], before, strconv.Itoa(len(token)-1-end), after, `"`)
}

// unit returns the length in bytes of the first character of a JSON string's
// content. An escape is one character, and so is a surrogate pair.
func unit(s string) int {
	if s[0] != '\\' {
		_, size := utf8.DecodeRuneInString(s)
		return size
	}
	if s[1] != 'u' {
		return len(`\n`)
	}
	const escape = len(`\u0000`)
	high := (s[2] == 'd' || s[2] == 'D') && strings.IndexByte("89abAB", s[3]) >= 0
	if high && strings.HasPrefix(s[escape:], `\u`) {
		return 2 * escape
	}
	return escape
}

// part is a member of an object or an element of an array.
type part struct {
	name  string // with its colon; empty in an array
	value string
}

// parts writes the first members or elements of text that fit in budget, and
// returns the number of omitted ones. Small values are written whole; the large
// ones get equal shares of the rest.
func (c *cutter) parts(text string, budget, depth int) (omitted int) {
	budget = max(budget, 0)
	// A partial element of an array is of little use, so few get much. A member
	// also has a name, so many get a little.
	share := max(budget/4, minPart)
	if text[0] == '{' {
		share = max(budget/16, minPart)
	}
	kept, total := head(text, budget, share)

	spare := budget
	for _, p := range kept {
		spare -= len(",") + len(p.name)
	}
	level := waterLevel(kept, spare)
	slack := 0
	for _, p := range kept {
		c.separate()
		c.add(p.name)
		before, due := len(c.out), min(len(p.value), level)
		c.value(p.value, min(len(p.value), level+slack), depth-1)
		slack += due - (len(c.out) - before)
	}
	return total - len(kept)
}

// head returns the longest run of parts with space for the name and for share
// bytes of the value of each, and the total number of parts. Members with too
// long a name, or the name of a mark, are skipped.
func head(text string, budget, share int) (kept []part, total int) {
	full, maxName := false, budget/4
	for i := 1; text[i] != '}' && text[i] != ']'; {
		if text[i] == ',' {
			i++
		}
		var p part
		if text[0] == '{' {
			end := stringEnd(text, i) + len(":")
			p.name, i = text[i:end], end
		}
		end := valueEnd(text, i)
		p.value, i = text[i:end], end
		total++
		if full || len(p.name) > maxName || isMark(p.name) {
			continue
		}
		need := len(",") + len(p.name) + min(len(p.value), share)
		if full = need > budget; !full {
			budget -= need
			kept = append(kept, p)
		}
	}
	return kept, total
}

func isMark(name string) bool {
	switch strings.Trim(name, `":`) {
	case markTruncated, markSize, markKeys:
		return true
	}
	return false
}

// waterLevel returns a size such that all values, each truncated to it, take at
// most spare bytes, and that could hardly be larger.
func waterLevel(parts []part, spare int) int {
	all := spare
	sizes := make([]int, 0, len(parts))
	for _, p := range parts {
		sizes = append(sizes, len(p.value))
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		left := len(sizes) - i
		if size*left > spare {
			return spare / left
		}
		spare -= size
	}
	return all
}
