package settings

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/document"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Document is a tenant's policy in a file: without grants and the modes of
// sessions, which expire. Apply and With leave a nil section unchanged, and
// replace any other.
type Document struct {
	Modes []Mode `json:"modes,omitzero"`
	// Danger is the mode of tools with the risk danger and without a mode: deny
	// or require_approval; empty keeps the current one.
	Danger      envelope.Mode `json:"danger,omitzero"`
	Rules       []Rule        `json:"rules,omitzero"`
	Preferences []Preference  `json:"preferences,omitzero"`
	Reviews     []ReviewRule  `json:"reviews,omitzero"`
}

// Names of the sections in documents and in changes.
const (
	sectionModes       = "modes"
	sectionDanger      = "danger"
	sectionRules       = "rules"
	sectionPreferences = "preferences"
	sectionReviews     = "reviews"
)

// Nouns for the entries of a section, in messages and events.
const (
	nounMode       = "mode"
	nounRule       = "rule"
	nounPreference = "preference"
	nounReview     = "review"
)

func (m Mode) label() string {
	if m.Automation == "" {
		return m.Pattern
	}
	return m.Pattern + " of automation " + m.Automation
}

func (r Rule) label() string { return r.ID }

func (p Preference) label() string {
	if p.Employee == (envelope.EmployeeID{}) {
		return p.Pattern
	}
	return p.Pattern + " of " + p.Employee.String()
}

func (r ReviewRule) label() string { return r.Pattern + " from risk " + string(r.settled().Risk) }

// settled returns the rule with defaults for omitted fields.
func (r ReviewRule) settled() ReviewRule {
	r.Risk, r.Approvals = cmp.Or(r.Risk, envelope.RiskLow), cmp.Or(r.Approvals, 1)
	return r
}

// Validate checks the document as far as possible without a database. The error
// is an *envelope.InvalidError with pointers into the document.
func (d Document) Validate() error {
	language, err := policy.NewLanguage()
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return d.check(func(r Rule) error { return checkRule(r, language, policy.Shape{}) })
}

// CheckDocument is Document.Validate for a document of the settings' tenant:
// rules may only name existing arguments of its tools.
func (s *Settings) CheckDocument(d Document) error { return d.check(s.CheckRule) }

// Bounds of a document, in addition to maxRules and maxPreferences.
const (
	maxModes   = 10_000
	maxReviews = 1000
)

func (d Document) check(rule func(Rule) error) error {
	var p check.Problems
	key := func(text string) error {
		_, err := policy.ParsePattern(text)
		return refused("/tool", err)
	}
	document.Check(&p, sectionModes, nounMode, maxModes, d.Modes, Mode.label, func(m Mode) error {
		_, err := policy.ParseMode(m.Mode)
		return all(key(m.Pattern), refused("/mode", err))
	})
	if d.Danger != "" {
		_ = p.Below("/"+sectionDanger, refused("", checkDanger(d.Danger))) // it has no other kind of error
	}
	document.Check(&p, sectionRules, nounRule, maxRules, d.Rules, Rule.label, func(r Rule) error {
		_, err := policy.ParseNarrowing(r.Mode)
		return cmp.Or(all(key(r.Pattern), refused("/mode", err)), refused("", rule(r)))
	})
	document.Check(&p, sectionPreferences, nounPreference, maxPreferences, d.Preferences, Preference.label, func(p Preference) error {
		return key(p.Pattern)
	})
	document.Check(&p, sectionReviews, nounReview, maxReviews, d.Reviews, ReviewRule.label, func(r ReviewRule) error {
		return cmp.Or(key(r.Pattern), refused("", r.settled().check()))
	})
	return p.Err()
}

// checkDanger checks the mode of danger. The error is fault.Invalid.
func checkDanger(mode envelope.Mode) error {
	if mode != envelope.ModeDeny && mode != envelope.ModeRequireApproval {
		return fault.New(fault.Invalid, "the mode of danger must be deny or require_approval; to allow a tool, set the mode allow for it")
	}
	return nil
}

// all joins several errors, each nil or an *envelope.InvalidError.
func all(errs ...error) error {
	var p check.Problems
	for _, err := range errs {
		_ = p.Below("", err) // it has no other kind of error
	}
	return p.Err()
}

// ruleEntry is the rule in a field error for an entry, or a part of it, that
// policy rejects.
const ruleEntry envelope.Rule = "entry"

// refused returns the error of an entry, or of its part at a pointer, as an
// *envelope.InvalidError.
func refused(pointer string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return document.Within(pointer, err)
	}
	text := "cannot be checked"
	if known, ok := errors.AsType[*fault.Error](err); ok {
		text = known.Text
	}
	return check.Invalid(pointer, ruleEntry, "is refused: %s", text)
}
