package jsonscan

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// member is one field of an object that is being written: its name is in
// out[from:colon], its value after the colon up to out[to].
type member struct {
	from, colon, to int
	plain           bool
}

// object reads an object and writes it with its fields in canonical order.
func (s *Scanner) object() {
	if !s.enter() {
		return
	}
	level := len(s.path)
	s.out = append(s.out, '{')
	start, base := len(s.out), len(s.members)
	sorted := true
	for s.next('}') {
		if len(s.members) > base {
			s.out = append(s.out, ',')
		}
		m := member{from: len(s.out)}
		var ok bool
		if m.plain, ok = s.name(); !ok {
			break
		}
		m.colon = len(s.out)
		s.out = append(s.out, ':')
		s.value()
		m.to = len(s.out)
		if sorted && len(s.members) > base {
			sorted = compare(s.out, s.members[len(s.members)-1], m) < 0
		}
		s.members = append(s.members, m)
	}
	if !sorted && !s.failed && level <= s.maxDepth && s.pos <= s.maxPos {
		s.order(start, s.members[base:])
	}
	s.members = s.members[:base]
	s.out = append(s.out, '}')
}

// order rewrites out[start:], which holds the members, in canonical order and
// reports names that occur twice.
func (s *Scanner) order(start int, members []member) {
	s.scratch = append(s.scratch[:0], s.out[start:]...)
	for i := range members {
		m := &members[i]
		m.from, m.colon, m.to = m.from-start, m.colon-start, m.to-start
	}
	slices.SortFunc(members, func(a, b member) int {
		return compare(s.scratch, a, b)
	})
	s.out = s.out[:start]
	repeated := false // a name is reported once, however often it occurs
	for i, m := range members {
		if i > 0 {
			s.out = append(s.out, ',')
			again := compare(s.scratch, members[i-1], m) == 0
			if again && !repeated {
				name := unquote(s.scratch[m.from:m.colon])
				s.ReportField(string(name), "duplicate_key", "occurs more than once in its object; keep one")
			}
			repeated = again
		}
		s.out = append(s.out, s.scratch[m.from:m.to]...)
	}
}

// compare orders the names of two members in buf by their UTF-16 code units,
// as RFC 8785 requires.
func compare(buf []byte, a, b member) int {
	x, y := buf[a.from+1:a.colon-1], buf[b.from+1:b.colon-1]
	if a.plain && b.plain {
		return bytes.Compare(x, y)
	}
	for len(x) > 0 && len(y) > 0 {
		r, n := firstRune(x)
		q, m := firstRune(y)
		if r != q {
			return int(unitOrder(r) - unitOrder(q))
		}
		x, y = x[n:], y[m:]
	}
	return len(x) - len(y)
}

// unitOrder returns a number that orders characters by their UTF-16 code units.
// That is the order of code points, but those beyond the basic plane come
// before U+E000, because UTF-16 writes them with surrogates.
func unitOrder(r rune) rune {
	if r >= 0xe000 && r <= 0xffff {
		return r + utf8.MaxRune
	}
	return r
}
