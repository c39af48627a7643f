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
	personWords = strings.Fields(`to cc bcc recipient recipients email emails attendee attendees invitee invitees participant participants guest
		guests assignee assignees reviewer reviewers member members user users username owner payee payees customer customers subscriber subscribers
		contact contacts phone mobile msisdn person people employee employees`)
	amountWords = strings.Fields(`amount amounts price total subtotal cost fee sum quantity qty units shares balance budget salary tax discount tip
		delta cents percent value off bid`)
	moneyParts = strings.Fields(`amount price total cost fee balance value quantity percent`)
	fromWords  = strings.Fields(`from source src origin old original previous`)
	intoWords  = strings.Fields(`to into destination dest target new`)
	placeWords = strings.Fields(`path paths file filename filepath folder directory dir parent bucket database db branch repo repository project workspace
		organization organisation org owner channel chat room account table collection list board stack section calendar addressbook url uri host
		hostname domain endpoint space team page sheet spreadsheet queue topic namespace cluster environment env region device group base head address
		location audience site`)
	// keyWords end the name of a key of something.
	keyWords   = strings.Fields(`id ids gid uid uuid key keys name slug number num path url sha hash index`)
	titleWords = strings.Fields(`subject title name summary headline label`)
	// boundWords are names of what pages and searches are bounded by.
	boundWords = strings.Fields(`limit count size max min page per offset start end cursor top`)
)

// roleOf returns the role of a field among the others.
func roleOf(f *field, fields []*field) role {
	if f.role != roleUnknown {
		return f.role
	}
	if slices.ContainsFunc(f.path, func(name string) bool { return !identifier.MatchString(name) }) {
		return roleRecipient // a name that is a value, such as an address
	}
	words := split(f.path[len(f.path)-1])
	if len(words) == 0 {
		return roleOther
	}
	first, last := words[0], words[len(words)-1]
	subject := last // the word that the name is about
	if len(words) > 1 && slices.Contains(keyWords, last) {
		subject = words[len(words)-2]
	}
	has := func(list []string, word string) bool { return slices.Contains(list, word) }
	ends := len(words) > 1 && first != "to" || f.pairs(fields)
	switch {
	case has(boundWords, first):
		return roleOther
	case (subject == "currency" || slices.Equal(words, []string{"currency", "code"})) && f.scalar():
		return roleCurrency
	case first == "head" && f.with("base", fields), first == "merge" && has(keyWords, last):
		return roleFrom
	case has(fromWords, first) && (len(words) > 1 || f.pairs(fields) || first != "from"):
		return roleFrom
	case has(intoWords, first) && ends:
		return roleInto
	case has(amountWords, last) && f.scalar() || len(words) > 1 && has(moneyParts, first) && f.scalar() && !has(keyWords, last) && last != "type":
		return roleAmount
	case has(placeWords, subject), has(placeWords, last), has(placeWords, first) && len(words) > 1:
		return roleInto
	case has(personWords, subject):
		return roleRecipient
	case has(titleWords, last):
		return roleTitle
	case has(keyWords, last) || has(keyWords, first):
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
	own := split(f.path[len(f.path)-1])
	opposite := intoWords
	if slices.Contains(intoWords, own[0]) {
		opposite = fromWords
	}
	return slices.ContainsFunc(fields, func(other *field) bool {
		words := split(other.path[len(other.path)-1])
		return other != f && len(words) > 0 && slices.Contains(opposite, words[0]) &&
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
