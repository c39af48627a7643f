// Package check collects the errors of a document written by a person or a
// program: one field error per place, in the words of the contract.
package check

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // a zone that one process accepts must be one that every process has
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Rules that a field may break, in addition to those of the envelope.
const (
	RuleMinimum   envelope.Rule = "minimum"
	RuleMaximum   envelope.Rule = "maximum"
	RuleUnknown   envelope.Rule = "unknown"
	RuleOrder     envelope.Rule = "order"
	RuleDuplicate envelope.Rule = "duplicate"
)

// maxText is the maximum length of a name, a reason or a source, in characters.
const maxText = 500

// Problems collects field errors. The zero value has none.
type Problems []envelope.FieldError

// Add adds a field error.
func (p *Problems) Add(pointer string, rule envelope.Rule, format string, args ...any) {
	*p = append(*p, envelope.FieldError{Pointer: pointer, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// Within checks that a number is within bounds.
func (p *Problems) Within(pointer string, n, least, most int) {
	if n < least {
		p.Add(pointer, RuleMinimum, "must be at least %d", least)
	}
	if n > most {
		p.Add(pointer, RuleMaximum, "must be at most %d", most)
	}
}

// Text checks that a text can be stored and is not too long.
func (p *Problems) Text(pointer, text string) {
	switch {
	case !utf8.ValidString(text):
		p.Add(pointer, envelope.RuleEncoding, "must be UTF-8")
	case strings.ContainsRune(text, 0):
		p.Add(pointer, envelope.RuleNUL, "must not contain the character U+0000")
	case utf8.RuneCountInString(text) > maxText:
		p.Add(pointer, envelope.RuleMaxLength, "must have at most %d characters", maxText)
	}
}

// Zone checks the name of a time zone.
func (p *Problems) Zone(pointer, name string) {
	if Zone(name) == nil {
		p.Add(pointer, envelope.RuleFormat, "must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC, upper and lower case as there")
	}
}

// Below adds the field errors of another check, with pointer in front of their
// pointers. It returns any error that is not an *envelope.InvalidError.
func (p *Problems) Below(pointer string, err error) error {
	if err == nil {
		return nil
	}
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	for _, f := range broken.Fields {
		p.Add(pointer+f.Pointer, f.Rule, "%s", f.Message)
	}
	return nil
}

// Fields returns the field errors of an *envelope.InvalidError, or the one of a
// fault with a pointer.
func Fields(err error) []envelope.FieldError {
	if e, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return e.Fields
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Pointer != "" {
		return []envelope.FieldError{{Pointer: e.Pointer, Rule: envelope.Rule(e.Rule), Message: e.Text}}
	}
	return nil
}

// Pointer joins names to a JSON Pointer. Names have no length limit, so it stops
// before a name longer than 64 bytes and before the pointer exceeds 512, like
// the pointers of package envelope.
func Pointer(names ...string) string {
	const maxName, maxPointer = 64, 512
	var b strings.Builder
	for _, name := range names {
		escaped := envelope.EscapePointer(name)
		if len(name) > maxName || b.Len()+1+len(escaped) > maxPointer {
			break
		}
		b.WriteString("/" + escaped)
	}
	return b.String()
}

// MaxProblems is the maximum number of field errors in one error.
const MaxProblems = 33

// Err returns the collected field errors as an *envelope.InvalidError, or nil.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: p[:min(len(p), MaxProblems)]}
}

// Invalid returns an *envelope.InvalidError for one field.
func Invalid(pointer string, rule envelope.Rule, format string, args ...any) error {
	var p Problems
	p.Add(pointer, rule, format, args...)
	return p.Err()
}

// JSON checks a JSON text by the rules of envelope.Canonical before it is
// decoded. All JSON from outside passes this check: numbers have a size that can
// be computed with, names in an object are unique, strings are UTF-8 without
// U+0000, and the nesting and the number of values are bounded. The error is an
// *envelope.InvalidError.
func JSON(raw []byte) error { return envelope.CheckJSON(raw, maxValues) }

// maxValues bounds the values in one text. The longest documents of the API have
// about half of that.
const maxValues = 200_000

// Zone returns a time zone by its IANA name. It returns nil for names that
// depend on the machine: the empty name and Local, and files of the time zone
// database that are not zones or count leap seconds.
func Zone(name string) *time.Location {
	if name == "" || name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "right/") {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// Slug reports whether a text can be the name of a bucket or the id of a
// source.
func Slug(text string) bool { return slug.MatchString(text) }

var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,99}$`)
