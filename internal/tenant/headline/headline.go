// Package headline writes one line about a call from its arguments: to whom, how much, from
// where and to where, then the rest as far as there is space. A line never leaves out a
// recipient, an amount or a destination: where they do not fit, it has the names of all
// arguments instead. Values that are not one plain word stand in quotes, so that no value
// passes for another argument. The package is pure, and does not know who may see a line.
package headline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/visible"
)

// Bounds of a headline, in characters.
const (
	// MaxLength is the maximum length of a headline.
	MaxLength = 200
	// maxValue is the length from which a value without a role is cut.
	maxValue = 60
	// maxFields bounds the arguments that are read of a call.
	maxFields = 500
)

// Of returns the headline of a call with the arguments, in an order. The patterns select
// its recipients, in addition to those that a name shows. It is "no arguments" for an
// empty object.
func Of(args json.RawMessage, order *Order, recipients []contact.Pattern) string {
	return line(read(args, order, recipients))
}

func line(fields []*field, whole bool) string {
	if len(fields) == 0 && whole {
		return "no arguments"
	}
	if text, complete := compose(fields); complete && whole {
		return text
	}
	return names(fields, whole)
}

// field is an argument: a scalar, or the scalars of a list. The elements of a list of
// objects have one field for each member.
type field struct {
	// path are the names of members above it and its own, without the indexes of lists.
	path []string
	// pattern is its JSON Pointer, with * in place of indexes.
	pattern string
	values  []string
	role    role
	// text reports whether a value is a string.
	text bool
	// words are those of its name, and plain reports whether no name of the path is a
	// value itself, such as an address.
	words []string
	plain bool
}

func newField(path []string, pattern string) *field {
	return &field{
		path: path, pattern: pattern, words: split(path[len(path)-1]),
		plain: !slices.ContainsFunc(path, func(name string) bool { return !identifier.MatchString(name) }),
	}
}

// compose returns a line of the fields, and whether it contains every value with a role.
func compose(fields []*field) (line string, complete bool) {
	ordered := slices.Clone(fields)
	slices.SortStableFunc(ordered, func(a, b *field) int { return int(a.role) - int(b.role) })
	var parts []string
	left, omitted := MaxLength-len(" · +500 more"), 0
	for _, f := range ordered {
		if f.role == roleCurrency && f.besideAmount(fields) {
			continue
		}
		part := f.label(fields) + " " + f.shown(f.role >= roleObject)
		if f.role == roleAmount {
			if c := currencyOf(f, fields); c != nil {
				part += " " + c.shown(false)
			}
		}
		if size := utf8.RuneCountInString(part) + len(" · "); size <= left {
			left -= size
			parts = append(parts, part)
			continue
		}
		if f.role < roleObject {
			return "", false
		}
		omitted++
	}
	if omitted > 0 {
		parts = append(parts, fmt.Sprintf("+%d more", omitted))
	}
	return strings.Join(parts, " · "), true
}

// currencyOf returns the currency of an amount: the one in the same object, or the only one
// of the call; nil if there is none.
func currencyOf(amount *field, fields []*field) *field {
	var found []*field
	for _, f := range fields {
		if f.role == roleCurrency {
			if slices.Equal(f.path[:len(f.path)-1], amount.path[:len(amount.path)-1]) {
				return f
			}
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// besideAmount reports whether the field is the currency of an amount.
func (f *field) besideAmount(fields []*field) bool {
	return slices.ContainsFunc(fields, func(amount *field) bool { return amount.role == roleAmount && currencyOf(amount, fields) == f })
}

// names returns the names of the arguments, with the number of values where there are several.
func names(fields []*field, whole bool) string {
	var b strings.Builder
	b.WriteString("arguments: ")
	for i, f := range fields {
		name := f.label(fields)
		if len(f.values) > 1 {
			name += fmt.Sprintf(" (%d)", len(f.values))
		}
		if utf8.RuneCountInString(b.String())+utf8.RuneCountInString(name) > MaxLength-len(", +500 more") {
			fmt.Fprintf(&b, ", +%d more", len(fields)-i)
			return b.String()
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	if !whole {
		b.WriteString(", and others")
	}
	return b.String()
}

// identifier matches the name of a member that is no value itself.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// label returns the name of the field, with the one above it where another field has the
// same name, and with all above it where a name is a value, such as an address.
func (f *field) label(fields []*field) string {
	first := len(f.path) - 1
	name := f.path[first]
	if first > 0 && slices.ContainsFunc(fields, func(other *field) bool { return other != f && other.path[len(other.path)-1] == name }) {
		first--
	}
	if !f.plain {
		first = 0
	}
	names := make([]string, 0, len(f.path))
	for _, name := range f.path[first:] {
		names = append(names, quote(name))
	}
	return strings.Join(names, ".")
}

// shown returns the values of the field.
func (f *field) shown(cut bool) string {
	texts := make([]string, len(f.values))
	for i, value := range f.values {
		if texts[i] = value; f.text {
			if cut && utf8.RuneCountInString(value) > maxValue {
				value = string([]rune(value)[:maxValue]) + "…"
			}
			texts[i] = quote(value)
		}
	}
	if len(texts) == 0 {
		return "(none)"
	}
	return strings.Join(texts, ", ")
}

// plainWord matches a value that needs no quotes.
var plainWord = regexp.MustCompile(`^[\p{L}\p{N}@._+/:#~=%&?*$-]+$`)

// quote returns a text as it is if it is one plain word, else in quotes, with everything
// that does not show written out.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	text = visible.Text(strings.Join(strings.Fields(text), " "))
	return "“" + straight.Replace(text) + "”"
}

var straight = strings.NewReplacer("“", `"`, "”", `"`)
