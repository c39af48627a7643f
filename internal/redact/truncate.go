package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DefaultLimit is how many bytes of a result are kept unless told otherwise.
const DefaultLimit = 10 * 1024

// MinLimit is the smallest limit: below it there is hardly space for
// more than the marks.
const MinLimit = 256

const (
	// maxDepth is how deep what is kept may be nested, as in any body.
	// PostgreSQL reads JSON recursively, and refuses what is nested far deeper.
	maxDepth = 128
	// maxCutDepth is how deep containers are opened to keep a part of each.
	maxCutDepth = 32
	// minContainer is the fewest bytes into which a container is cut; with
	// less it is an ellipsis.
	minContainer = 48
	// minPart is the fewest bytes given to a part: an ellipsis and a little.
	minPart = 16

	ellipsis = `"…"`
)

// The names of the marks. A cut object leaves out its own members of these
// names.
const (
	markTruncated = "_truncated"
	markSize      = "_original_size"
	markKeys      = "_omitted_keys"
	markItems     = "_omitted_items"
)

// Truncate returns valid JSON of at most limit bytes, or of MinLimit if that
// is more. What fits is returned as it is. Else the result is an object with
// "_truncated": true and "_original_size", the bytes there were, and as much
// of the head as fits: the members of an object beside the marks,
// the elements of an array under "items", a string under "text".
//
// Inside, small values stay whole and large ones share what is left, so that
// one large value does not push the others out. A string is cut between
// characters and says how many bytes are missing; an object says how many
// "_omitted_keys", an array how many "_omitted_items" there were. Order never
// changes. A raw that is no JSON is treated as a JSON string of its text.
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

// cutter writes the head of compact JSON within a budget of bytes.
type cutter struct{ out []byte }

func (c *cutter) add(texts ...string) {
	for _, text := range texts {
		c.out = append(c.out, text...)
	}
}

// separate writes a comma unless a container was just opened.
func (c *cutter) separate() {
	if last := c.out[len(c.out)-1]; last != '{' && last != '[' {
		c.add(",")
	}
}

// mark writes how much was omitted, if anything was.
func (c *cutter) mark(name string, omitted int) {
	if omitted > 0 {
		c.separate()
		c.add(`"`, name, `":`, strconv.Itoa(omitted))
	}
}

// markSpace is how many bytes a container keeps free for a mark about text and
// for its own end.
func (c *cutter) markSpace(text string) int {
	return len(`,{"":}]`) + len(markItems) + len(strconv.Itoa(len(text)))
}

// value writes text in at most budget bytes, of which there are at least as
// many as text or an ellipsis has.
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

// container writes the head of an object or array.
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

// string writes the head of a string, cut between characters, and how many
// bytes of it are missing.
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

// unit returns how many bytes the first character of a JSON string's inside
// has: an escape is one character, and so is a pair of surrogates.
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

// parts writes the first members or elements of text that budget has space
// for, and returns how many it left out. Small values are written whole; the
// large ones get equal shares of the rest.
func (c *cutter) parts(text string, budget, depth int) (omitted int) {
	budget = max(budget, 0)
	// An element of an array is of use when it is whole, so that few get much;
	// a member has a name to tell, so that many get a little.
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

// head returns the longest run of parts such that each has space for its name
// and for share bytes of its value, and how many parts there are. Members
// whose name takes too much space, or is that of a mark, are passed over.
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

// waterLevel returns a size such that all values, each cut to it, take no more
// than spare bytes, and that could hardly be larger.
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
