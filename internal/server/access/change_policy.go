package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// scopedMode is a mode for a pattern, of an automation, of a session, or of the
// organisation.
type scopedMode struct {
	Owner, Pattern, Mode string
}

func (c *comparison) comparePolicy() {
	was, is := &c.before.Policy, &c.after.Policy
	if was.Danger != is.Danger {
		c.add(everyTool, policy.Stricter(was.Danger, is.Danger) != is.Danger, "what danger means")
	}
	mode := func(m settings.Mode) scopedMode { return scopedMode{m.Automation, m.Pattern, m.Mode} }
	c.compareModes("the mode", mapped(was.Modes, mode), mapped(is.Modes, mode))
	session := func(m settings.SessionMode) scopedMode { return scopedMode{m.Session, m.Pattern, string(m.Mode)} }
	c.compareModes("the session mode", mapped(c.before.Sessions, session), mapped(c.after.Sessions, session))
	c.compareSessionEnds()
	compare(was.Rules, is.Rules, func(r settings.Rule) string { return r.ID }, func(was, is *settings.Rule) {
		what := "rule " + either(was, is).ID
		if was != nil {
			c.add(patternOf(was.Pattern), loosensRule(*was, is), what)
		}
		if is != nil {
			c.add(patternOf(is.Pattern), false, what)
		}
	})
	preference := func(p settings.Preference) settings.Preference {
		return settings.Preference{Employee: p.Employee, Pattern: p.Pattern, SetBy: p.SetBy}
	}
	compare(mapped(was.Preferences, preference), mapped(is.Preferences, preference), preferenceKey, func(was, is *settings.Preference) {
		p := either(was, is)
		c.changes = append(c.changes, Change{
			What: "the preference that switches " + p.Pattern + " off", Tools: patternOf(p.Pattern), Loosens: is == nil, SetBy: p.SetBy,
		})
	})
	compare(was.Reviews, is.Reviews, reviewKey, func(was, is *settings.ReviewRule) {
		r := either(was, is)
		c.add(patternOf(r.Pattern), was != nil && loosensReview(*was, is), "the review rule of "+r.Pattern)
	})
	compare(c.before.Grants, c.after.Grants, func(g settings.Grant) uuid.UUID { return g.ID }, func(was, is *settings.Grant) {
		g := either(was, is)
		c.add(g.Tool, is != nil, "grants for "+g.Tool.String())
	})
}

// compareModes compares modes, of which the most specific counts for a tool.
func (c *comparison) compareModes(what string, before, after []scopedMode) {
	compare(before, after, func(m scopedMode) scopedMode { return scopedMode{Owner: m.Owner, Pattern: m.Pattern} }, func(was, is *scopedMode) {
		m := either(was, is)
		c.add(patternOf(m.Pattern), loosensMode(was, is), what+" of "+m.Pattern)
	})
}

// loosensMode reports whether a mode is less strict than before. The mode that
// applies without it depends on the tool and is not known here, so allow is
// the only mode that can always be removed, and deny the only one that can
// always be set.
func loosensMode(was, is *scopedMode) bool {
	const allow, deny = string(envelope.ModeAllow), string(envelope.ModeDeny)
	switch {
	case is != nil && is.Mode == deny, was != nil && was.Mode == allow:
		return false
	case was == nil || is == nil:
		return true
	}
	return policy.Stricter(envelope.Mode(was.Mode), envelope.Mode(is.Mode)) != envelope.Mode(is.Mode)
}

// compareSessionEnds finds modes of sessions that now end earlier.
func (c *comparison) compareSessionEnds() {
	key := func(m settings.SessionMode) scopedMode { return scopedMode{Owner: m.Session, Pattern: m.Pattern} }
	compare(c.before.Sessions, c.after.Sessions, key, func(was, is *settings.SessionMode) {
		if was != nil && is != nil {
			c.add(patternOf(is.Pattern), was.Mode != envelope.ModeAllow && is.ExpiresAt.Before(was.ExpiresAt), "the session mode of "+is.Pattern)
		}
	})
}

// loosensRule reports whether a rule about arguments lost part of its effect.
// nil is a removed rule.
func loosensRule(was settings.Rule, is *settings.Rule) bool {
	if !was.Enabled {
		return false
	}
	if is == nil || !is.Enabled || is.Automation != was.Automation || is.Pattern != was.Pattern || is.Expression != was.Expression {
		return true
	}
	return policy.Stricter(envelope.Mode(was.Mode), envelope.Mode(is.Mode)) != envelope.Mode(is.Mode)
}

// loosensReview reports whether a review rule requires less. Its times do not
// count, since they let nothing run. nil is a removed rule.
func loosensReview(was settings.ReviewRule, is *settings.ReviewRule) bool {
	none := settings.ReviewRule{Pattern: was.Pattern, Risk: was.Risk, Approvals: 1}
	if is == nil {
		is = &none
	}
	now := *is
	now.Wait, now.Warn, now.Escalate, now.LastChange = was.Wait, was.Warn, was.Escalate, was.LastChange
	lower := now.Approvals < was.Approvals
	now.Approvals = was.Approvals
	if was.Edits == "" {
		now.Edits = "" // asking for another person is stricter
	}
	return lower || !same(was, now)
}

func preferenceKey(p settings.Preference) string { return p.Employee.String() + " " + p.Pattern }

func reviewKey(r settings.ReviewRule) string { return r.Pattern + " " + string(r.Risk) }

// rulesLookAt reports whether a rule about arguments may use a property of
// tools or employees. Such a rule may have less effect for a stricter value,
// so every change of the property counts as loosening.
func (c *comparison) rulesLookAt(property string) bool {
	return slices.ContainsFunc(c.before.Policy.Rules, func(r settings.Rule) bool { return r.Enabled && strings.Contains(r.Expression, property) })
}

// mapped returns the results of of for each item.
func mapped[A, B any](all []A, of func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = of(a)
	}
	return out
}

// of names a property of a tool, or of something else.
func of(property string, thing any) string { return fmt.Sprintf("%s of %s", property, thing) }
