package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// PolicyDocument is all of a tenant's policy that belongs into a file: not
// grants and the modes of sessions, which end by themselves. A section that is
// nil is left alone; one that is there is made to be exactly that.
type Document struct {
	Modes       *[]ModeEntry       `json:"modes,omitempty"`
	Rules       *[]RuleEntry       `json:"rules,omitempty"`
	Preferences *[]PreferenceEntry `json:"preferences,omitempty"`
	Reviews     *[]ReviewEntry     `json:"reviews,omitempty"`
}

// ModeEntry is a Mode as a document has it.
type ModeEntry struct {
	Automation string `json:"automation_id,omitzero"`
	Key        string `json:"tool"`
	Mode       string `json:"mode"`
}

// RuleEntry is a Rule as a document has it.
type RuleEntry struct {
	ID         string `json:"rule_id"`
	Automation string `json:"automation_id,omitzero"`
	Key        string `json:"tool"`
	Expression string `json:"expression"`
	Mode       string `json:"mode"`
	Reason     string `json:"reason,omitzero"`
	// Enabled is true where it is left out.
	Enabled *bool `json:"enabled,omitempty"`
}

// PreferenceEntry is a Preference as a document has it.
type PreferenceEntry struct {
	Employee envelope.EmployeeID `json:"employee_id,omitzero"`
	Key      string              `json:"tool"`
}

// ReviewEntry is a ReviewRule as a document has it.
type ReviewEntry struct {
	Key string `json:"tool"`
	// Risk is low where it is left out, and Approvals 1.
	Risk      envelope.Risk      `json:"risk,omitzero"`
	Approvals int                `json:"approvals,omitzero"`
	Wait      *envelope.Duration `json:"wait,omitempty"`
	Warn      *envelope.Duration `json:"warn,omitempty"`
	Escalate  *envelope.Duration `json:"escalate,omitempty"`
}

// The sections, as they are named in documents and in changes.
const (
	sectionModes       = "modes"
	sectionRules       = "rules"
	sectionPreferences = "preferences"
	sectionReviews     = "reviews"
)

func (e ModeEntry) label() string { return labelOf(e.Key, e.Automation) }

func (e ModeEntry) mode() Mode { return Mode{Automation: e.Automation, Pattern: e.Key, Mode: e.Mode} }

func (e RuleEntry) label() string { return e.ID }

// settled leaves out what goes without saying, so that two entries that mean
// the same are the same.
func (e RuleEntry) settled() RuleEntry {
	if e.Enabled != nil && *e.Enabled {
		e.Enabled = nil
	}
	return e
}

func (e RuleEntry) rule() Rule {
	return Rule{
		ID: e.ID, Automation: e.Automation, Pattern: e.Key, Expression: e.Expression, Mode: e.Mode, Reason: e.Reason,
		Enabled: e.Enabled == nil || *e.Enabled,
	}
}

func (e PreferenceEntry) label() string {
	if e.Employee == (envelope.EmployeeID{}) {
		return e.Key
	}
	return e.Key + " of " + e.Employee.String()
}

func (e PreferenceEntry) preference() Preference {
	return Preference{Employee: e.Employee, Pattern: e.Key}
}

func (e ReviewEntry) label() string { return e.Key + " from risk " + string(e.settled().Risk) }

func (e ReviewEntry) settled() ReviewEntry {
	e.Risk, e.Approvals = cmp.Or(e.Risk, envelope.RiskLow), cmp.Or(e.Approvals, 1)
	return e
}

func (e ReviewEntry) review() ReviewRule {
	e = e.settled()
	return ReviewRule{
		Pattern: e.Key, Risk: e.Risk, Approvals: e.Approvals,
		Wait: (*time.Duration)(e.Wait), Warn: (*time.Duration)(e.Warn), Escalate: (*time.Duration)(e.Escalate),
	}
}

func labelOf(key, automation string) string {
	if automation == "" {
		return key
	}
	return key + " of automation " + automation
}

// Change is the policy that the document describes, to decide by.
func (d Document) Change() Change {
	return Change{
		Modes: each(d.Modes, ModeEntry.mode), Rules: each(d.Rules, RuleEntry.rule),
		Preferences: each(d.Preferences, PreferenceEntry.preference), Reviews: each(d.Reviews, ReviewEntry.review),
	}
}

// each is what every entry of a section stands for; nil if the section is.
func each[E, T any](section *[]E, of func(E) T) []T {
	if section == nil {
		return nil
	}
	all := make([]T, len(*section))
	for i, e := range *section {
		all[i] = of(e)
	}
	return all
}

// same is for sections whose entries have one form alone.
func same[E any](e E) E { return e }

// Validate checks everything that can be checked without a database. The
// error is an *envelope.InvalidError whose pointers lead into the document.
func (d Document) Validate() error {
	language, err := policy.NewLanguage()
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return d.check(func(r Rule) error { return checkRule(r, language, policy.Shape{}) })
}

// CheckPolicy is Validate for a document that is to hold in the snapshot's
// tenant: rules may name only arguments that its tools have.
func (s *Settings) CheckDocument(d Document) error { return d.check(s.CheckRule) }

func (d Document) check(rule func(Rule) error) error {
	var found []envelope.FieldError
	key := func(text string) []envelope.FieldError {
		_, err := policy.ParsePattern(text)
		return below("/tool", err)
	}
	found = append(found, checkSection(sectionModes, d.Modes, maxModes, func(e ModeEntry) []envelope.FieldError {
		_, err := policy.ParseMode(e.Mode)
		return append(key(e.Key), below("/mode", err)...)
	})...)
	found = append(found, checkSection(sectionRules, d.Rules, MaxRules, func(e RuleEntry) []envelope.FieldError {
		_, err := policy.ParseNarrowing(e.Mode)
		if wrong := append(key(e.Key), below("/mode", err)...); wrong != nil {
			return wrong
		}
		return below("", rule(e.rule()))
	})...)
	found = append(found, checkSection(sectionPreferences, d.Preferences, MaxPreferences, func(e PreferenceEntry) []envelope.FieldError { return key(e.Key) })...)
	found = append(found, checkSection(sectionReviews, d.Reviews, maxReviews, func(e ReviewEntry) []envelope.FieldError {
		if wrong := key(e.Key); wrong != nil {
			return wrong
		}
		return below("", e.review().check())
	})...)
	if len(found) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: found[:min(len(found), maxProblems)]}
}

// The bounds of a document: how many modes and review rules it has, and how
// many things one error lists.
const (
	maxModes    = 10_000
	maxReviews  = 1000
	maxProblems = 33
)

// checkSection checks the entries of a section, and that none is there twice.
func checkSection[E interface{ label() string }](section string, all *[]E, most int, check func(E) []envelope.FieldError) []envelope.FieldError {
	if all == nil {
		return nil
	}
	if len(*all) > most {
		return []envelope.FieldError{{Pointer: "/" + section, Rule: envelope.RuleMaxItems, Message: fmt.Sprintf("must have at most %d items", most)}}
	}
	var found []envelope.FieldError
	first := make(map[string]int, len(*all))
	for i, e := range *all {
		at := fmt.Sprintf("/%s/%d", section, i)
		for _, f := range check(e) {
			f.Pointer = at + f.Pointer
			found = append(found, f)
		}
		if before, ok := first[e.label()]; ok {
			found = append(found, envelope.FieldError{
				Pointer: at, Rule: envelope.RuleDuplicateKey, Message: fmt.Sprintf("must not be of the same %s as item %d", strings.TrimSuffix(section, "s"), before),
			})
			continue
		}
		first[e.label()] = i
	}
	return found
}

// below is what is wrong at a place in an entry.
func below(at string, err error) []envelope.FieldError {
	if err == nil {
		return nil
	}
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
		fields := make([]envelope.FieldError, len(broken.Fields))
		for i, f := range broken.Fields {
			f.Pointer = at + f.Pointer
			fields[i] = f
		}
		return fields
	}
	text := "cannot be checked"
	if known, ok := errors.AsType[*fault.Error](err); ok {
		text = known.Text
	}
	return []envelope.FieldError{{Pointer: at, Rule: ruleEntry, Message: "is refused: " + text}}
}

// ruleEntry is the rule that a field error names where policy refuses an
// entry, or a part of it.
const ruleEntry envelope.Rule = "entry"
