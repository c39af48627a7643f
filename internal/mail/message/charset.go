package message

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding/htmlindex"
)

// Guessing a charset is the most expensive step, so it reads only detectBytes
// of a text. If fewer than one byte in fewHigh is not ASCII, the text is
// Western European or almost ASCII.
const (
	detectBytes = 1 << 10
	fewHigh     = 25
)

// decodeText returns the text of a part as UTF-8. The declared charset is used
// unless the bytes contradict it. Without one, or with a contradicted one,
// UTF-8 is tried first and a guess last.
func (m *Message) decodeText(l *leaf) string {
	content := l.content
	charset := strings.ToLower(strings.TrimSpace(l.charset))
	switch {
	case l.unicode || ascii(content) && !sevenBit(charset):
		return valid(content)
	case bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")):
		if text, ok := convert("utf-16", content); ok {
			return text
		}
	}
	cut := l.size > int64(len(content))
	if utf8.Valid(content) || cut && utf8.Valid(content[:len(content)-incomplete(content)]) {
		if !multiByte(charset) {
			return valid(content)
		}
	}
	if charset != "" && charset != "utf-8" && charset != "us-ascii" {
		if text, ok := convert(charset, content); ok {
			return text
		}
	}
	m.warn("the character set is missing or wrong")
	from := max(0, firstHigh(content)-detectBytes/8)
	sample := content[from:min(len(content), from+detectBytes)]
	if charset == "utf-8" && bytes.Count(bytes.ToValidUTF8(sample, []byte{0}), []byte{0})*50 < len(sample) {
		return valid(content)
	}
	if highBytes(sample)*fewHigh > len(sample) {
		if text, ok := convert(guess(sample), content); ok {
			return text
		}
	}
	text, _ := convert("windows-1252", content)
	return text
}

// guess returns the most probable charset of a sample, and of equally probable
// ones the first by name, since chardet returns them in any order.
func guess(sample []byte) string {
	all, err := chardet.NewTextDetector().DetectAll(sample)
	if err != nil {
		return ""
	}
	all = slices.DeleteFunc(all, func(r chardet.Result) bool { return r.Charset == "UTF-8" })
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Charset, b.Charset))
	}).Charset
}

// sevenBit reports whether a charset encodes other letters as ASCII bytes.
func sevenBit(charset string) bool {
	return strings.HasPrefix(charset, "iso-2022") || strings.HasPrefix(charset, "utf-16") || charset == "hz-gb-2312" ||
		charset == "csiso2022jp"
}

// multiByte reports whether bytes in the charset may be valid UTF-8 by chance.
func multiByte(charset string) bool {
	return sevenBit(charset) || strings.HasPrefix(charset, "gb") || strings.HasPrefix(charset, "big5") ||
		strings.HasPrefix(charset, "euc-") || strings.HasPrefix(charset, "shift") || strings.HasPrefix(charset, "ks_")
}

// convert decodes a text. It fails for an unknown charset and if more than one
// character in fifty is invalid.
func convert(charset string, content []byte) (string, bool) {
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return "", false
	}
	decoded, err := encoding.NewDecoder().Bytes(content)
	if err != nil || bytes.Count(decoded, []byte("\uFFFD"))*50 > utf8.RuneCount(decoded) {
		return "", false
	}
	return string(decoded), true
}

func ascii(content []byte) bool { return firstHigh(content) == len(content) }

// firstHigh returns the index of the first byte that is not ASCII.
func firstHigh(content []byte) int {
	for i, c := range content {
		if c >= 0x80 {
			return i
		}
	}
	return len(content)
}

func highBytes(content []byte) int {
	n := 0
	for _, c := range content {
		n += int(c >> 7)
	}
	return n
}

// valid returns a text without a byte order mark and with invalid UTF-8
// replaced.
func valid(content []byte) string {
	return strings.ToValidUTF8(string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))), "\uFFFD")
}

// incomplete returns the number of bytes at the end that begin a truncated
// character.
func incomplete(content []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(content); n++ {
		if utf8.RuneStart(content[len(content)-n]) {
			if utf8.FullRune(content[len(content)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
