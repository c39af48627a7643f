package policies

import (
	"cmp"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The range of past actions of a check, the time for evaluating an expression,
// after which the result is partial, and the number of actions named per result.
const (
	checkRange   = 30 * request.Day
	checkTimeout = 2 * time.Second
	checkActions = 20
)

// CheckRule handles POST /api/v1/policy/check. It checks the expression of a
// rule, and evaluates it for past actions. It stores nothing.
func CheckRule(c *request.Call, body wire.RuleCheck) error {
	key, err := policy.ParsePattern(body.Tool)
	if err != nil {
		return request.Invalid("/tool", envelope.RuleFormat, "must be source:action, source:*, *:action or *")
	}
	if c.By.Tools != nil && !key.Within(c.By.Tools) {
		return fault.Coded(wire.CodeTools, fault.Denied, "the token does not cover the tools %s", key)
	}
	snap, err := c.Settings.Current(c.R.Context(), c.By.Tenant)
	if err != nil {
		return err
	}
	names := func(all []policy.Name) []wire.ExpressionName {
		return request.Map(all, func(n policy.Name) wire.ExpressionName { return wire.ExpressionName(n) })
	}
	checked := wire.RuleChecked{Variables: names(policy.Names())}
	err = slot.InTurns(c.R.Context(), func(func() error) error {
		found, arguments, err := snap.CheckExpression(body.Tool, body.Expression)
		checked.Errors = request.Map(found, func(m policy.Mistake) wire.ExpressionError { return wire.ExpressionError(m) })
		checked.Arguments = names(arguments)
		return err
	})
	if err == nil && len(checked.Errors) == 0 {
		checked.Past, err = matchPast(c, body, key, time.Now())
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, checked)
}

// matchPast evaluates an expression for past actions.
func matchPast(c *request.Call, body wire.RuleCheck, tool policy.Key, now time.Time) (*wire.RulePast, error) {
	req := simulate.Request{From: body.From, To: now, Tool: tool, Limit: cmp.Or(body.Most, simulate.MaxPage)}
	if req.From.IsZero() {
		req.From = now.Add(-checkRange)
	}
	if !req.From.Before(now) {
		return nil, request.Invalid("/since", "order", "must be in the past")
	}
	page, err := actions.ReadPast(c, req)
	if err != nil {
		return nil, err
	}
	rule := settings.Rule{ID: "check", Automation: body.Automation, Pattern: body.Tool, Expression: body.Expression, Mode: string(envelope.ModeDeny)}
	var m simulate.Matched
	err = slot.InTurns(c.R.Context(), func(next func() error) error {
		begun := time.Now()
		m = page.Match(rule, func() bool { return time.Since(begun) > checkTimeout || next() != nil })
		return c.R.Context().Err()
	})
	if err != nil {
		return nil, err
	}
	ids := c.Routes.Admit(c.By, "getAction") == nil
	count := func(all []envelope.ActionID) wire.RuleCount {
		counted := wire.RuleCount{Count: len(all), Actions: []envelope.ActionID{}}
		if ids {
			counted.Actions = append(counted.Actions, all[:min(checkActions, len(all))]...)
		}
		return counted
	}
	return &wire.RulePast{
		Since: req.From.UTC(), Examined: m.Examined, Complete: m.Complete, Compared: m.Compared, True: count(m.True), False: count(m.False), Failed: count(m.Failed),
		Reasons: request.Map(m.Reasons, func(f policy.Failure) string { return string(f) }),
	}, nil
}
