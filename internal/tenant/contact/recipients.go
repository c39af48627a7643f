package contact

import (
	"html"
	"mime"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Recipients returns all contacts that a value may represent, without
// duplicates. Each must be looked up in the do-not-contact list: a match of any
// one counts.
//
// It parses formats that people and programs write: lists of mail addresses with
// names and groups, mailto: and other URLs, telephone numbers with separators,
// @handles, #channels, Slack's <@U01>. It returns every plausible reading, since
// the tool's interpretation is unknown; also every part that resembles an
// address (with percent encoding, encoded words and HTML entities decoded), and
// the whole text as a handle. An address also yields its domain, and a domain
// every parent domain down to two labels, so that an entry example.org covers
// mail.example.org.
//
// Its time is linear in the length of the value. Readings longer than MaxLength
// are omitted, since no entry can be as long.
func Recipients(text string, o Options) []Contact {
	r := reach{options: o, seen: map[Contact]struct{}{}, dialled: map[string]struct{}{}}
	for _, reading := range readTexts(text) {
		r.text(reading)
	}
	return r.found
}

// readTexts returns the cleaned forms of a text: the original and decoded ones.
func readTexts(text string) []string {
	const most = 8
	list := []string{clean(text)}
	for i := 0; i < len(list) && len(list) < most; i++ {
		for _, decode := range []func(string) string{unpercent, html.UnescapeString, decodeWords, dropComments} {
			next := clean(decode(list[i]))
			if len(list) < most && !slices.Contains(list, next) {
				list = append(list, next)
			}
		}
	}
	return list
}

var (
	percentByte = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	comment     = regexp.MustCompile(`\([^()]*\)`)
)

// unpercent decodes valid percent encodings and keeps the rest.
func unpercent(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	return percentByte.ReplaceAllStringFunc(text, func(code string) string {
		plain, err := url.PathUnescape(code)
		if err != nil {
			return code
		}
		return plain
	})
}

// decodeWords decodes the encoded words of mail headers.
func decodeWords(text string) string {
	if !strings.Contains(text, "=?") {
		return text
	}
	plain, err := new(mime.WordDecoder).DecodeHeader(text)
	if err != nil {
		return text
	}
	return plain
}

// dropComments removes comments in brackets, as in mail headers.
func dropComments(text string) string {
	if !strings.Contains(text, "(") {
		return text
	}
	return comment.ReplaceAllString(text, "")
}

// reach collects the contacts that a value may represent.
type reach struct {
	options Options
	seen    map[Contact]struct{}
	dialled map[string]struct{}
	found   []Contact
}

func (r *reach) add(kind Kind, value string) {
	c := Contact{kind, value}
	if _, old := r.seen[c]; old || value == "" || len(value) > MaxLength {
		return
	}
	r.seen[c] = struct{}{}
	r.found = append(r.found, c)
}

func (r *reach) text(text string) {
	list, err := mail.ParseAddressList(text)
	for _, a := range list {
		if at := strings.LastIndexByte(a.Address, '@'); at >= 0 {
			r.email(a.Address[:at], a.Address[at+1:])
			r.handle(a.Address)
		}
	}
	r.addresses(text)
	r.handle(text)
	if err != nil {
		for token := range strings.FieldsFuncSeq(text, between) {
			r.token(token)
		}
		for word := range strings.FieldsSeq(text) {
			if word[0] == '@' || word[0] == '#' {
				r.handle(word)
			}
		}
	}
	runs := digitRuns(text)
	if number, context, found := strings.Cut(strings.ToLower(text), ";phone-context=+"); found { // of a tel: URL
		_, number, _ = strings.Cut(number, "tel:")
		context, _, _ = strings.Cut(context, ";")
		runs = append(runs, digitRuns("+"+context+number)...)
	}
	for _, run := range runs {
		if _, old := r.dialled[run]; old {
			continue // the readings of a text share most of their numbers
		}
		r.dialled[run] = struct{}{}
		for _, value := range readings(run, r.options) {
			r.add(Phone, value)
		}
	}
}

// between reports whether a rune separates recipients.
func between(r rune) bool { return strings.ContainsRune(",;<>|\"\n\r\t、،", r) }

// token adds one recipient of a list.
func (r *reach) token(text string) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 2048 {
		return // no URL that a tool takes is as long, nor is any entry
	}
	r.handle(text)
	r.domain(strings.TrimLeft(text, "@#*."))
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return
	}
	r.handle(u.Opaque)
	r.domain(u.Hostname())
	for segment := range strings.SplitSeq(u.Path, "/") {
		r.handle(segment)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			r.handle(value)
		}
	}
}

func (r *reach) handle(text string) {
	if len(text) <= 8*MaxLength { // folding does not shorten a text by more than that
		r.add(Handle, foldHandle(text))
	}
}

func (r *reach) domain(text string) {
	if len(text) > 8*MaxLength {
		return
	}
	for _, domain := range parents(foldDomain(text)) {
		r.add(Domain, domain)
	}
}

func (r *reach) email(local, domain string) {
	if len(local)+len(domain) > 8*MaxLength {
		return
	}
	if value, ok := foldEmail(local, domain, r.options); ok {
		r.add(Email, value)
	}
	r.domain(domain)
}

// addresses adds all parts that resemble a mail address.
func (r *reach) addresses(text string) {
	for at := range len(text) {
		if text[at] != '@' {
			continue
		}
		after := strings.TrimLeft(text[at+1:], " ")
		end := strings.IndexFunc(after, notName)
		if end < 0 {
			end = len(after)
		}
		domain := strings.Trim(after[:end], ".-_。")
		before := strings.TrimRight(text[:at], " ")
		if domain == "" || before == "" {
			continue
		}
		if rest, quoted := strings.CutSuffix(before, `"`); quoted {
			r.email(unquote(rest[strings.LastIndexByte(rest, '"')+1:]), domain)
			continue
		}
		r.email(tail(before, notAtom), domain)
		r.email(strings.Trim(tail(before, notWord), "'"), domain)
	}
}

// unquote removes the backslashes of a quoted string.
func unquote(text string) string { return strings.ReplaceAll(text, `\`, "") }

// tail returns the text after the last rune for which not returns true.
func tail(text string, not func(rune) bool) string {
	at := strings.LastIndexFunc(text, not)
	if at < 0 {
		return text
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[at+size:]
}

// notName reports whether a rune is invalid in a domain name.
func notName(r rune) bool {
	return r != '。' && r != '.' && notWord(r) || r == '\'' || r == '+'
}

// notWord reports whether a rune is uncommon in local parts.
func notWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._+-'", r)
}
