package jsonscan

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

const (
	// maxName is the longest field name, in bytes, that a pointer repeats.
	maxName = 64
	// maxPointer is the longest pointer, in bytes. A problem further down is
	// reported at the last place that can be named.
	maxPointer = 512
	// maxReports bounds the problems that are examined, kept or not. It bounds the
	// cost of a text in which one problem is repeated.
	maxReports = 128
)

// Problem is a problem of the text at a pointer. The message is the remedy and
// never contains a value.
type Problem struct {
	Pointer string
	Rule    string
	Message string
}

// Report records a problem with the value that is being, or was just, read. Only
// the first 32 are kept, and none after a syntax error.
func (s *Scanner) Report(rule, message string) {
	if s.listening() {
		s.note(s.pointer(), rule, message)
	}
}

// ReportField records a problem with a field of the value that was just read.
func (s *Scanner) ReportField(name, rule, message string) {
	if s.listening() {
		s.note(string(extend([]byte(s.pointer()), []byte(name))), rule, message)
	}
}

// Problems returns the number of recorded problems.
func (s *Scanner) Problems() int { return len(s.problems) }

// Cut forgets all but the first n problems and returns the others.
func (s *Scanner) Cut(n int) []Problem {
	rest := slices.Clone(s.problems[n:])
	s.problems = s.problems[:n]
	s.reports = n // or later text could not be rejected
	return rest
}

// listening counts a problem and reports whether it is recorded. Callers check
// it first, because building the pointer is the costly part.
func (s *Scanner) listening() bool {
	if s.failed || len(s.problems) >= maxProblems || s.reports >= maxReports {
		return false
	}
	s.reports++
	return true
}

// note records a problem once, however often it is found.
func (s *Scanner) note(pointer, rule, message string) {
	for _, p := range s.problems {
		if p.Pointer == pointer && p.Rule == rule {
			return
		}
	}
	s.problems = append(s.problems, Problem{pointer, rule, message})
}

// Fail records a last problem, even beyond the limit, and ends the reading.
func (s *Scanner) Fail(rule, message string) {
	if s.failed {
		return
	}
	s.problems = append(s.problems, Problem{s.pointer(), rule, message})
	s.failed = true
	s.pos = len(s.src)
}

func (s *Scanner) syntax(hint string) {
	s.Fail("syntax", fmt.Sprintf("is not valid JSON at byte %d: %s", s.pos, hint))
}

// pointer returns the RFC 6901 pointer of the scanner's position.
func (s *Scanner) pointer() string {
	pointer := make([]byte, 0, 64)
	for _, st := range s.path {
		before := len(pointer)
		switch {
		case !st.object:
			pointer = extend(pointer, strconv.AppendInt(nil, int64(max(st.entry, 0)), 10))
		case st.nameTo > 0:
			pointer = extend(pointer, s.nameOf(st))
		}
		if len(pointer) == before {
			break
		}
	}
	return string(pointer)
}

// nameOf returns the name of a step's field, or only the beginning of a name
// that is too long for a pointer anyway.
func (s *Scanner) nameOf(st step) []byte {
	const longest = len(`""`) + maxName*len(`\u0000`)
	raw := s.src[st.nameFrom:st.nameTo]
	switch {
	case len(raw) > longest:
		return raw[:longest]
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return raw[1 : len(raw)-1]
	}
	name := Scanner{src: raw}
	return name.Text()
}

// extend appends a name to a pointer. A pointer that would be too long is
// returned unchanged.
func extend(pointer, name []byte) []byte {
	if len(name) > maxName || len(pointer)+1+2*len(name) > maxPointer {
		return pointer
	}
	pointer = append(pointer, '/')
	for _, c := range name {
		switch c {
		case '~':
			pointer = append(pointer, "~0"...)
		case '/':
			pointer = append(pointer, "~1"...)
		default:
			pointer = append(pointer, c)
		}
	}
	return pointer
}
