// Package jsonscan reads JSON in one pass, checks it more strictly than
// encoding/json, and writes it in canonical form. encoding/json cannot take its
// place: it replaces invalid UTF-8 and lone surrogates without an error, and does
// not report duplicate keys.
//
// The package is independent of envelopes. Its caller walks the objects whose
// fields it knows with Open, Field and Element, and passes other values whole to
// Value or Skip.
//
// A syntax error ends the reading. Every other problem is recorded with a JSON
// Pointer and the reading goes on, so that a caller can show all of them at
// once. Problems never contain a value.
package jsonscan

import (
	"bytes"
	"math"
)

const (
	// maxProblems bounds the problems recorded for one text.
	maxProblems = 32
	// hardDepth bounds the stack for any limit of the caller.
	hardDepth = 1000
)

// Scanner reads one text. It is not safe for use by several goroutines.
type Scanner struct {
	src []byte
	pos int
	// out holds the canonical form of the value that Value is reading, and the
	// text that was read last.
	out     []byte
	scratch []byte
	members []member
	path    []step
	// maxDepth and maxPos are the caller's limits as absolute positions.
	maxDepth int
	maxPos   int
	// values counts the values read; at maxValues the reading ends.
	values, maxValues int
	problems          []Problem
	// reports counts the problems examined since the last Cut.
	reports int
	failed  bool
}

// step is one open object or array on the path to the scanner's position.
type step struct {
	// entry counts from 0; it is -1 before the first entry.
	entry int
	// The name of the current field is, quotes included,
	// src[nameFrom:nameTo]; both are 0 in an array and before a name is read.
	nameFrom, nameTo int
	object           bool
}

// New returns a scanner at the start of src, which it keeps and never writes
// to. Until Limit is called only the scanner's own depth limit of 1000 holds.
func New(src []byte) *Scanner {
	s := &Scanner{out: make([]byte, 0, min(len(src), 4096)), members: make([]member, 0, 16), path: make([]step, 0, 8)}
	s.Reset(src)
	return s
}

// Reset restarts the scanner on another text, like New, and keeps its memory:
// earlier results become invalid.
func (s *Scanner) Reset(src []byte) {
	*s = Scanner{
		src: src, out: s.out[:0], scratch: s.scratch[:0], members: s.members[:0], path: s.path[:0],
		maxDepth: hardDepth, maxPos: math.MaxInt, maxValues: math.MaxInt,
	}
}

// Limit sets the number of further levels that the following text may be
// nested. Past bytes, the scanner no longer orders fields: the caller promises
// to reject such a text by its size.
func (s *Scanner) Limit(levels, bytes int) {
	s.maxDepth = len(s.path) + levels
	s.maxPos = s.pos + bytes
}

// LimitValues ends the reading of a text after n values.
func (s *Scanner) LimitValues(n int) { s.maxValues = n }

// Offset returns the number of bytes read.
func (s *Scanner) Offset() int { return s.pos }

// Failed reports whether a syntax error ended the reading.
func (s *Scanner) Failed() bool { return s.failed }

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// Open enters the object ('{') or array ('[') that comes next. It returns
// false, and reads nothing, when something else comes next.
func (s *Scanner) Open(kind byte) bool {
	if s.Peek() != kind {
		return false
	}
	return s.enter()
}

// Field moves to the next field of the innermost open object and returns its
// name, which is valid until the next call. At the end it leaves the object
// and returns false. After each name the caller reads exactly one value.
func (s *Scanner) Field() (name []byte, ok bool) {
	if !s.next('}') {
		return nil, false
	}
	mark := len(s.out)
	if _, ok := s.name(); !ok {
		return nil, false
	}
	return s.take(mark), true
}

// Element moves to the next element of the innermost open array. At the end
// it leaves the array and returns false.
func (s *Scanner) Element() bool { return s.next(']') }

// Text reads a string, which the caller has checked to come next, and returns
// its unescaped text. The bytes are valid until the next call.
func (s *Scanner) Text() []byte {
	mark := len(s.out)
	s.text()
	if s.failed {
		return nil
	}
	return s.take(mark)
}

// Value reads any value and returns its canonical form, valid until the next
// call. The form means something only if no problem was found.
func (s *Scanner) Value() []byte {
	mark := len(s.out)
	s.value()
	canonical := s.out[mark:]
	s.out = s.out[:mark]
	return canonical
}

// Skip reads and checks any value and drops it.
func (s *Scanner) Skip() { s.Value() }

// End reports a problem unless only white space is left.
func (s *Scanner) End() {
	if s.Peek(); s.pos < len(s.src) {
		s.syntax("nothing may follow the value")
	}
}

// take removes the string that begins at out[mark] and returns its text.
func (s *Scanner) take(mark int) []byte {
	canonical := s.out[mark:]
	s.out = s.out[:mark]
	return unquote(canonical)
}

func (s *Scanner) value() {
	if s.values++; s.values > s.maxValues {
		s.Fail("size", "has too many values; send less at once")
		return
	}
	switch s.Peek() {
	case '"':
		s.text()
	case '{':
		s.object()
	case '[':
		s.array()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.number()
	case 't':
		s.word("true")
	case 'f':
		s.word("false")
	case 'n':
		s.word("null")
	default:
		if s.pos == 0 && bytes.HasPrefix(s.src, []byte("\xef\xbb\xbf")) {
			s.syntax("leave out the byte order mark")
			return
		}
		s.syntax("a value is missing or misspelt")
	}
}

func (s *Scanner) array() {
	if !s.enter() {
		return
	}
	s.out = append(s.out, '[')
	first := true
	for s.next(']') {
		if !first {
			s.out = append(s.out, ',')
		}
		first = false
		s.value()
	}
	s.out = append(s.out, ']')
}

func (s *Scanner) word(word string) {
	end := s.pos + len(word)
	if end > len(s.src) || string(s.src[s.pos:end]) != word {
		s.syntax("a value is missing or misspelt")
		return
	}
	s.out = append(s.out, word...)
	s.pos = end
}

// enter opens the object or array whose first byte comes next.
func (s *Scanner) enter() bool {
	switch depth := len(s.path) + 1; {
	case depth > hardDepth:
		s.Fail("depth", "is nested too deeply to be read")
		return false
	case depth == s.maxDepth+1:
		s.Report("depth", "is nested too deeply; flatten what you send")
	}
	s.path = append(s.path, step{entry: -1, object: s.src[s.pos] == '{'})
	s.pos++
	return true
}

// next moves to the next entry of the innermost object or array, or leaves it
// at its closing bracket.
func (s *Scanner) next(closing byte) bool {
	if s.failed {
		return false
	}
	top := &s.path[len(s.path)-1]
	top.entry++
	top.nameFrom, top.nameTo = 0, 0
	switch c := s.Peek(); {
	case c == closing:
		s.pos++
		s.path = s.path[:len(s.path)-1]
		return false
	case top.entry == 0:
		return true
	case c == ',':
		s.pos++
		return true
	}
	s.syntax("a comma or a closing bracket is missing")
	return false
}

// name reads a field's name and the colon after it, and appends the name in
// canonical form to out. plain is as text returns it.
func (s *Scanner) name() (plain, ok bool) {
	if s.Peek() != '"' {
		s.syntax("a field name in double quotes is missing")
		return false, false
	}
	from := s.pos
	plain = s.text()
	if s.failed {
		return false, false
	}
	to := s.pos
	if s.Peek() != ':' {
		s.syntax("a colon is missing after a field name")
		return false, false
	}
	s.pos++
	top := &s.path[len(s.path)-1]
	top.nameFrom, top.nameTo = from, to
	return plain, true
}
