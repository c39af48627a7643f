// Package limits owns the settings of every limit: buckets, quiet hours, the
// do-not-contact list, what employees may do, pauses, what operators say about
// tools, and a tenant's own settings. It checks them, stores them with the
// event that tells who changed what, reads them back, and compiles those of
// one tenant into a Set that answers without a database. It refuses to apply
// them: the gates and the claim do.
package limits

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // a zone that is taken here must be one that every process has
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
)

// Rules that a setting may break, beside those of the envelope.
const (
	ruleMinimum envelope.Rule = "minimum"
	ruleMaximum envelope.Rule = "maximum"
	ruleUnknown envelope.Rule = "unknown"
	ruleOrder   envelope.Rule = "order"
)

// maxText is how many characters a name, a reason or a source may have.
const maxText = 500

// problems collects what is wrong with a setting.
type problems []envelope.FieldError

func (p *problems) add(pointer string, rule envelope.Rule, format string, args ...any) {
	*p = append(*p, envelope.FieldError{Pointer: pointer, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// within checks that a number lies in bounds.
func (p *problems) within(pointer string, n, least, most int) {
	if n < least {
		p.add(pointer, ruleMinimum, "must be at least %d", least)
	}
	if n > most {
		p.add(pointer, ruleMaximum, "must be at most %d", most)
	}
}

// text checks that a text can be stored and is not too long.
func (p *problems) text(pointer, text string) {
	switch {
	case !utf8.ValidString(text):
		p.add(pointer, envelope.RuleEncoding, "must be UTF-8")
	case strings.ContainsRune(text, 0):
		p.add(pointer, envelope.RuleNUL, "must not hold the character U+0000")
	case utf8.RuneCountInString(text) > maxText:
		p.add(pointer, envelope.RuleMaxLength, "must have at most %d characters", maxText)
	}
}

// zone checks the name of a time zone.
func (p *problems) zone(pointer, name string) {
	if !knownZone(name) {
		p.add(pointer, envelope.RuleFormat, "must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC, upper and lower case as there")
	}
}

// below takes what another check found over, at a place below a pointer.
func (p *problems) below(pointer string, err error) error {
	if err == nil {
		return nil
	}
	broken, ok := err.(*envelope.InvalidError) // never wrapped
	if !ok {
		return err
	}
	for _, f := range broken.Fields {
		p.add(pointer+f.Pointer, f.Rule, "%s", f.Message)
	}
	return nil
}

// maxProblems is how many things one error lists.
const maxProblems = 33

// err is what was found, or nil.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: p[:min(len(p), maxProblems)]}
}

func invalid(pointer string, rule envelope.Rule, format string, args ...any) error {
	var p problems
	p.add(pointer, rule, format, args...)
	return p.err()
}

// knownZone says that a name means the same zone on every machine. The empty
// name, Local, and the files that lie beside the zones do not.
func knownZone(name string) bool {
	if name == "" || name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "right/") {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

// slug is what the names of buckets and the ids of sources are made of.
var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,99}$`)
