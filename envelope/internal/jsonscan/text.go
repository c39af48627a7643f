package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ruleEncoding = "encoding"
	ruleNUL      = "nul"

	encodingMessage = "must be valid UTF-8 without lone surrogates"
	nulMessage      = "must not contain the character U+0000"

	// The control characters that RFC 8785 writes with a letter, and the letters.
	controls       = "\b\t\n\f\r"
	controlEscapes = "btnfr"
)

// verbatim reports whether a byte needs no escape in a canonical string and is
// ASCII.
func verbatim(c byte) bool {
	return c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\'
}

// verbatimWord reports whether verbatim holds for each byte of a word: the highest bit of a
// byte of low, quote or backslash is set if the byte is, and perhaps where one below it is.
func verbatimWord(word uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^('"'*ones), word^('\\'*ones)
	low := (word - 0x20*ones) &^ word
	return (word|low|(quote-ones)&^quote|(backslash-ones)&^backslash)&high == 0
}

// text reads a string and appends its canonical form to out. plain reports
// whether the form is ASCII without escapes, whose bytes sort like the text.
func (s *Scanner) text() (plain bool) {
	i := s.pos + 1
	for i+8 <= len(s.src) && verbatimWord(binary.LittleEndian.Uint64(s.src[i:])) {
		i += 8
	}
	for i < len(s.src) && verbatim(s.src[i]) {
		i++
	}
	s.out = append(s.out, s.src[s.pos:i]...)
	if i < len(s.src) && s.src[i] == '"' {
		s.out = append(s.out, '"')
		s.pos = i + 1
		return true
	}
	s.pos = i
	s.restOfText()
	return false
}

// restOfText continues from the first byte that needs special handling.
func (s *Scanner) restOfText() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case verbatim(c):
			from := s.pos
			for s.pos < len(s.src) && verbatim(s.src[s.pos]) {
				s.pos++
			}
			s.out = append(s.out, s.src[from:s.pos]...)
		case c == '"':
			s.out = append(s.out, '"')
			s.pos++
			return
		case c == '\\':
			if !s.escape() {
				s.syntax("a backslash starts no known escape")
				return
			}
		case c < 0x20:
			s.syntax("a control character in a string must be escaped")
			return
		default:
			r, n := utf8.DecodeRune(s.src[s.pos:])
			if r == utf8.RuneError && n == 1 {
				s.Report(ruleEncoding, encodingMessage)
			}
			s.out = utf8.AppendRune(s.out, r)
			s.pos += n
		}
	}
	s.syntax("a string is not closed")
}

// escape reads one escape, or two that form a surrogate pair.
func (s *Scanner) escape() bool {
	if s.pos+1 >= len(s.src) {
		return false
	}
	switch c := s.src[s.pos+1]; c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		s.out = append(s.out, '\\', c)
		s.pos += 2
		return true
	case '/':
		s.out = append(s.out, '/')
		s.pos += 2
		return true
	}
	r, ok := unit(s.src[s.pos:])
	if !ok {
		return false
	}
	s.pos += 6
	if utf16.IsSurrogate(r) {
		low, _ := unit(s.src[s.pos:])
		r = utf16.DecodeRune(r, low)
		if r == utf8.RuneError {
			s.Report(ruleEncoding, encodingMessage)
		} else {
			s.pos += 6
		}
	}
	if r == 0 {
		s.Report(ruleNUL, nulMessage)
		r = utf8.RuneError
	}
	s.out = appendRune(s.out, r)
	return true
}

// unit reads the UTF-16 code unit that src starts with as \uXXXX.
func unit(src []byte) (rune, bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	var code [2]byte
	_, err := hex.Decode(code[:], src[2:6])
	return rune(code[0])<<8 | rune(code[1]), err == nil
}

// AppendText appends a Go string as a canonical JSON string. Bytes that are
// not UTF-8 are kept, so that the reader of the result can refuse them.
func AppendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		if c := text[i]; verbatim(c) || c >= utf8.RuneSelf {
			dst = append(dst, c)
		} else {
			dst = appendRune(dst, rune(c))
		}
	}
	return append(dst, '"')
}

// appendRune appends a character as RFC 8785 writes it inside a string.
func appendRune(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= 0x20:
		return utf8.AppendRune(dst, r)
	}
	if i := strings.IndexByte(controls, byte(r)); i >= 0 {
		return append(dst, '\\', controlEscapes[i])
	}
	return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&0xf])
}

// unquote returns the text of a canonical string. Without escapes it is a part
// of the string itself.
func unquote(canonical []byte) []byte {
	inner := canonical[1 : len(canonical)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text := make([]byte, 0, len(inner))
	for len(inner) > 0 {
		r, n := firstRune(inner)
		text = utf8.AppendRune(text, r)
		inner = inner[n:]
	}
	return text
}

// firstRune decodes the first character of the inside of a canonical string,
// and returns its length there in bytes.
func firstRune(inner []byte) (rune, int) {
	if inner[0] != '\\' {
		return utf8.DecodeRune(inner)
	}
	if inner[1] == 'u' {
		r, _ := unit(inner)
		return r, 6
	}
	if i := strings.IndexByte(controlEscapes, inner[1]); i >= 0 {
		return rune(controls[i]), 2
	}
	return rune(inner[1]), 2
}
