package jsonscan

import (
	"bytes"
	"strconv"
)

const (
	// maxNumber is the longest number, in characters, both as it was written
	// and in canonical form.
	maxNumber = 400
	// maxExponent bounds the power of ten as it was written.
	maxExponent = 400
	// surePower is a power of ten of the first digit with which a number of either
	// sign surely fits into a float64.
	surePower = 307
	// maxPlain is the most digits that an integer has without an exponent.
	maxPlain = 21
)

// number reads a number and appends its canonical form to out.
func (s *Scanner) number() {
	from := s.pos
	if s.src[s.pos] == '-' {
		s.pos++
	}
	whole := s.digits()
	if whole == 0 {
		s.syntax("a number needs a digit here")
		return
	}
	if zero := s.src[s.pos-whole] == '0'; zero && whole > 1 {
		s.syntax("a number must not start with a zero")
		return
	}
	integer := true
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		integer = false
		s.pos++
		if s.digits() == 0 {
			s.syntax("a number needs a digit after its point")
			return
		}
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		integer = false
		s.pos++
		if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			s.syntax("a number needs a digit in its exponent")
			return
		}
	}
	text := s.src[from:s.pos]
	if integer && whole <= maxPlain && string(text) != "-0" {
		s.out = append(s.out, text...)
		return
	}
	var ok bool
	if s.out, ok = appendNumber(s.out, text); !ok {
		s.Report("number", "must have at most 400 characters and fit into a 64-bit float: at most about 1.8e308, and not so small that it would be 0; send it as a string")
	}
}

// digits skips decimal digits and returns their number.
func (s *Scanner) digits() int {
	from := s.pos
	for s.pos < len(s.src) && s.src[s.pos] >= '0' && s.src[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - from
}

// appendNumber appends the canonical form of a number that follows JSON's
// grammar. It reports false for a number beyond the limits.
func appendNumber(dst, text []byte) ([]byte, bool) {
	if len(text) > maxNumber {
		return dst, false
	}
	start := len(dst)
	if text[0] == '-' {
		dst = append(dst, '-')
		text = text[1:]
	}
	// The number is 0.digits times ten to the power of point.
	var array [maxNumber]byte
	digits, point, ok := decimal(array[:0], text)
	if !ok {
		return dst[:start], false
	}
	if len(digits) == 0 {
		return append(dst[:start], '0'), true
	}
	if power := point - 1; (power < -surePower || power > surePower) && !fits(text) {
		return dst[:start], false
	}
	dst = appendDecimal(dst, digits, point)
	return dst, len(dst)-start <= maxNumber
}

// fits reports whether a number other than zero has a nearest float64 that is
// neither infinite nor zero. Most programs, browsers included, read numbers as
// float64 and would show and send another value.
func fits(text []byte) bool {
	f, err := strconv.ParseFloat(string(text), 64)
	return err == nil && f != 0
}

// decimal splits an unsigned number into its digits, without zeros at either
// end, and the position of the point before or after them.
func decimal(digits, text []byte) (_ []byte, point int, ok bool) {
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		var err error
		point, err = strconv.Atoi(string(text[e+1:]))
		if err != nil || point < -maxExponent || point > maxExponent {
			return nil, 0, false
		}
		text = text[:e]
	}
	fraction := false
	for _, c := range text {
		switch {
		case c == '.':
			fraction = true
		case len(digits) > 0 || c != '0':
			digits = append(digits, c)
			if !fraction {
				point++
			}
		case fraction:
			point--
		}
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, point, true
}

// appendDecimal writes 0.digits times ten to the power of point in the style
// of ECMAScript, as RFC 8785 requires.
func appendDecimal(dst, digits []byte, point int) []byte {
	switch {
	case point > maxPlain || point <= -6:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:]...)
		}
		dst = append(dst, 'e')
		if point > 0 {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(point-1), 10)
	case point <= 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -point)
		return append(dst, digits...)
	case point < len(digits):
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	}
	dst = append(dst, digits...)
	return appendZeros(dst, point-len(digits))
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
