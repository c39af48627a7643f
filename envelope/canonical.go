package envelope

import (
	"math"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
)

// maxCanonicalDepth is more than an envelope may have, so that the definitions
// and answers of tools have a canonical form too.
const maxCanonicalDepth = 128

// Canonical returns the one form of a JSON value that all texts with the same
// meaning share. It orders fields and escapes strings as RFC 8785 does and
// leaves out white space.
//
// Numbers differ from RFC 8785, which rounds them to a 64-bit float: there
// 12345678901234567890 and 12345678901234567891 are the same, and an approval
// of one covers the other. Here a number keeps every digit, and only its
// spelling is made uniform: 1, 1.0 and 10e-1 become 1, and -0 becomes 0. For
// the shortest spelling of a float, other than -0, the result is that of
// RFC 8785.
//
// A number may have 400 characters, as it is written and in canonical form, and
// a power of ten, as it is written, from -400 to 400. A 64-bit float must be able
// to hold it, rounded: one that would be infinite, or zero without being zero, is
// refused. A value may be nested 128 levels deep. The text must be JSON without
// keys that occur twice, invalid UTF-8, lone surrogates or U+0000. Every error
// is an *InvalidError.
func Canonical(raw []byte) ([]byte, error) {
	canonical, problems := canonicalize(jsonscan.New(raw))
	if err := invalid("", problems); err != nil {
		return nil, err
	}
	return canonical, nil
}

// CheckJSON returns the errors that Canonical would return for a text, and
// rejects one with more than mostValues values: a short value takes many times
// its text in memory. Every error is an *InvalidError.
func CheckJSON(raw []byte, mostValues int) error {
	s := jsonscan.New(raw)
	s.Limit(maxCanonicalDepth, math.MaxInt)
	s.LimitValues(mostValues)
	s.Skip()
	s.End()
	if err := invalid("", s.Cut(0)); err != nil {
		return err
	}
	return nil
}

// canonicalize returns the canonical form of a scanner's text, which is valid until
// the scanner reads another.
func canonicalize(s *jsonscan.Scanner) ([]byte, []jsonscan.Problem) {
	s.Limit(maxCanonicalDepth, math.MaxInt)
	canonical := s.Value()
	s.End()
	return canonical, s.Cut(0)
}
