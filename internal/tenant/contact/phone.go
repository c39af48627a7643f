package contact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
)

const (
	// minPhoneDigits is the minimum number of digits of a possible number.
	// maxPhoneDigits is the maximum, including dialing prefixes.
	minPhoneDigits = 5
	maxPhoneDigits = 20
)

// dialled returns a cleaned text with decimal digits of every script, dashes and
// spaces converted to ASCII.
func dialled(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case unicode.Is(unicode.Nd, r):
			return '0' + digitValue(r)
		case unicode.Is(unicode.Pd, r), r == '\u2212':
			return '-'
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, text)
}

// digitValue returns the value of a decimal digit. Unicode orders them in rows
// of ten from zero.
func digitValue(r rune) rune {
	zero := r
	for unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return (r - zero) % 10
}

// phoneLike reports whether a text consists of digits and their usual
// separators.
func phoneLike(text string) bool {
	text = dialled(text)
	return countDigits(text) >= minPhoneDigits && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("+0123456789 -./()", r)
	})
}

func countDigits(text string) int {
	n := 0
	for i := range len(text) {
		if '0' <= text[i] && text[i] <= '9' {
			n++
		}
	}
	return n
}

// parsePhone parses a telephone number of an entry. problem describes an error.
func parsePhone(text string, o Options) (value, problem string) {
	text = dialled(text)
	if scheme, rest, found := strings.Cut(text, ":"); found {
		switch strings.ToLower(scheme) {
		case "tel", "sms", "whatsapp":
			text, _, _ = strings.Cut(strings.TrimSpace(rest), ";")
		}
	}
	text = strings.TrimLeft(text, " (")
	if !phoneLike(text) || strings.LastIndexByte(text, '+') > 0 {
		return "", "contact must be one telephone number in digits, such as +4930123456"
	}
	if rest, found := strings.CutPrefix(text, "00"); found {
		text = "+" + rest
	}
	if value, ok := foldPhone(text, o.Region); ok {
		return value, ""
	}
	if !strings.HasPrefix(text, "+") && o.Region == "" {
		return "", "contact must be a telephone number with + and the country's code, such as +4930123456"
	}
	return "", "contact must be a valid telephone number, such as +4930123456"
}

// foldPhone returns a number in E.164. Without a region it must begin with a
// plus.
func foldPhone(text, region string) (string, bool) {
	for range 4 {
		number, err := phonenumbers.Parse(text, region)
		if err != nil || phonenumbers.IsPossibleNumberWithReason(number) != phonenumbers.IS_POSSIBLE {
			return "", false
		}
		e164 := phonenumbers.Format(number, phonenumbers.E164)
		if e164 == text {
			return e164, true
		}
		text, region = e164, ""
	}
	return "", false
}

// readings returns, in E.164, every number that a run of digits may represent:
// with its plus, with an international prefix, in the national format of the
// region, and with a missing plus.
func readings(run string, o Options) []string {
	var list []string
	try := func(text, region string) {
		if value, ok := foldPhone(text, region); ok {
			list = append(list, value)
		}
	}
	run = strings.TrimSpace(run)
	if strings.HasPrefix(run, "+") {
		try(run, "")
		return list
	}
	if rest, found := strings.CutPrefix(run, "00"); found {
		try("+"+rest, "")
	}
	if rest, found := strings.CutPrefix(run, "011"); found {
		try("+"+rest, "")
	}
	if o.Region != "" {
		try(run, o.Region)
	}
	try("+"+run, "")
	return list
}

// digitRuns returns the parts of a cleaned text that may be telephone numbers.
func digitRuns(text string) []string {
	if countDigits(dialled(text)) < minPhoneDigits {
		return nil
	}
	text = dialled(text)
	var runs []string
	for len(text) > 0 {
		start := strings.IndexAny(text, "+0123456789(")
		if start < 0 {
			break
		}
		before := text[:start]
		text = text[start:]
		end := 1 + len(text[1:]) - len(strings.TrimLeft(text[1:], "0123456789 -./()"))
		run := text[:end]
		text = text[end:]
		if last, _ := utf8.DecodeLastRuneInString(before); run[0] != '+' && (last == '_' || unicode.IsLetter(last)) {
			continue // digits within a word, as of an id
		}
		digits := countDigits(run)
		switch {
		case digits < minPhoneDigits:
		case digits <= maxPhoneDigits && len(run) <= 3*maxPhoneDigits:
			runs = append(runs, run)
		default:
			for piece := range strings.FieldsSeq(run) {
				if n := countDigits(piece); n >= minPhoneDigits && n <= maxPhoneDigits {
					runs = append(runs, piece)
				}
			}
		}
	}
	return runs
}
