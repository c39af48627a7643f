package headline

import (
	"slices"
	"strings"
	"unicode"
)

// role is the meaning of an argument for its reader, and its place in the line.
type role int

// The roles, in the order of a line. Those before roleObject are never left out.
const (
	roleUnknown role = iota
	roleRecipient
	roleAmount
	roleCurrency
	roleFrom
	roleInto
	roleObject
	roleTitle
	roleOther
)

// Words of names, by the role that they give to an argument.
var (
	personWords = set(`to cc bcc recipient recipients email emails attendee attendees invitee invitees participant participants guest
		guests assignee assignees reviewer reviewers member members user users username owner payee payees customer customers subscriber subscribers
		contact contacts phone mobile msisdn person people employee employees`)
	amountWords = set(`amount amounts price total subtotal cost fee sum quantity qty units shares balance budget salary tax discount tip
		delta cents percent value off bid`)
	moneyParts = set(`amount price total cost fee balance value quantity percent`)
	fromWords  = set(`from source src origin old original previous`)
	intoWords  = set(`to into destination dest target new`)
	placeWords = set(`path paths file filename filepath folder directory dir parent bucket database db branch repo repository project workspace
		organization organisation org owner channel chat room account table collection list board stack section calendar addressbook url uri host
		hostname domain endpoint space team page sheet spreadsheet queue topic namespace cluster environment env region device group base head address
		location audience site`)
	// keyWords end the name of a key of something.
	keyWords   = set(`id ids gid uid uuid key keys name slug number num path url sha hash index`)
	titleWords = set(`subject title name summary headline label`)
	// boundWords are names of what pages and searches are bounded by.
	boundWords = set(`limit count size max min page per offset start end cursor top`)
)

// set returns the words of a text.
func set(text string) map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		words[word] = true
	}
	return words
}

// roleOf returns the role of a field among the others.
func roleOf(f *field, fields []*field) role {
	if f.role != roleUnknown {
		return f.role
	}
	if !f.plain {
		return roleRecipient // a name that is a value, such as an address
	}
	words := f.words
	if len(words) == 0 {
		return roleOther
	}
	first, last := words[0], words[len(words)-1]
	subject := last // the word that the name is about
	if len(words) > 1 && keyWords[last] {
		subject = words[len(words)-2]
	}
	ends := len(words) > 1 && first != "to" || f.pairs(fields)
	switch {
	case boundWords[first]:
		return roleOther
	case (subject == "currency" || slices.Equal(words, []string{"currency", "code"})) && f.scalar():
		return roleCurrency
	case first == "head" && f.with("base", fields), first == "merge" && keyWords[last]:
		return roleFrom
	case fromWords[first] && (len(words) > 1 || f.pairs(fields) || first != "from"):
		return roleFrom
	case intoWords[first] && ends:
		return roleInto
	case amountWords[last] && f.scalar() || len(words) > 1 && moneyParts[first] && f.scalar() && !keyWords[last] && last != "type":
		return roleAmount
	case placeWords[subject], placeWords[last], placeWords[first] && len(words) > 1:
		return roleInto
	case personWords[subject]:
		return roleRecipient
	case titleWords[last]:
		return roleTitle
	case keyWords[last] || keyWords[first]:
		return roleObject
	}
	return roleOther
}

// scalar reports whether all values are short enough to be numbers.
func (f *field) scalar() bool {
	return !slices.ContainsFunc(f.values, func(v string) bool { return len(v) > 40 })
}

// pairs reports whether another field of the same object is the other end of it: a source
// where it is a destination, and the reverse.
func (f *field) pairs(fields []*field) bool {
	opposite := intoWords
	if intoWords[f.words[0]] {
		opposite = fromWords
	}
	return slices.ContainsFunc(fields, func(other *field) bool {
		return other != f && len(other.words) > 0 && opposite[other.words[0]] &&
			slices.Equal(other.path[:len(other.path)-1], f.path[:len(f.path)-1])
	})
}

// with reports whether the call has another field with the name.
func (f *field) with(name string, fields []*field) bool {
	return slices.ContainsFunc(fields, func(other *field) bool { return other.path[len(other.path)-1] == name })
}

// split returns the words of a name in lower case.
func split(name string) []string {
	var b strings.Builder
	before := rune(0)
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)):
			b.WriteRune(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.Fields(b.String())
}
