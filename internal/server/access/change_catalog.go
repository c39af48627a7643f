package access

import (
	"cmp"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func (c *comparison) compareCatalog() {
	compare(c.before.Sources, c.after.Sources, func(s catalog.Source) string { return s.ID }, func(was, is *catalog.Source) {
		id := either(was, is).ID
		c.add(policy.Key{Source: id, Action: "*"}, loosensSource(was, is), of("what is set for the tools", "source "+id))
		if opensPlace(was, is) {
			// The settings of other sources may be about the same place.
			c.add(everyTool, true, "where source "+id+" is")
		}
	})
	c.compareTools()
	c.compareToolRules()
	c.compareSnapshots()
	compare(c.before.Reconciles, c.after.Reconciles, func(r reconcile.ToolRule) policy.Key { return r.Key }, func(was, is *reconcile.ToolRule) {
		c.add(either(was, is).Key, is != nil && is.Rule.Resend, of("the reconcile rule", either(was, is).Key))
	})
	compare(c.before.Subscriptions, c.after.Subscriptions, func(s subscription.Subscription) string { return s.Name }, func(was, is *subscription.Subscription) {
		s := either(is, was)
		// Policy allows the deliveries of a subscription, and the holder of its
		// signing secret acts for people in Slack.
		what := "what subscription " + s.Name + " may send"
		c.add(policy.Key{Source: s.Source, Action: "*"}, is != nil, what)
		c.add(patternOf(s.Tool), false, what)
	})
}

// loosensSource compares sources. A new one is compared with a source of which
// nothing is set.
func loosensSource(was, is *catalog.Source) bool {
	if is == nil {
		return true // the settings of its tools go with it
	}
	if was == nil {
		was = &catalog.Source{DriftGuard: catalog.GuardFull, Enabled: true, Quarantine: connection.Discovered(is.Kind)}
	}
	return is.Enabled && !was.Enabled || riskRank(is.DefaultRisk) < riskRank(was.DefaultRisk) || was.Quarantine && !is.Quarantine ||
		is.DriftGuard == catalog.GuardInterface && was.DriftGuard != catalog.GuardInterface
}

// opensPlace reports whether calls may go to another place than before, or to a
// place that was never accepted.
func opensPlace(was, is *catalog.Source) bool {
	return is != nil && !is.Unaccepted && (was == nil || was.Unaccepted || !is.SamePlace(*was))
}

// riskRank orders risks of tools, from read. Without one a tool is a write.
func riskRank(r policy.ToolRisk) int {
	return slices.Index([]policy.ToolRisk{policy.RiskRead, policy.RiskWrite, policy.RiskDanger}, cmp.Or(r, policy.RiskWrite))
}

// effectRank orders effect classes, beginning with those that may be repeated
// without limit.
func effectRank(e envelope.Effect) int {
	return slices.Index([]envelope.Effect{envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce}, e)
}

// toolSettings are the settings of a tool that people can make, and the values
// derived from them.
type toolSettings struct {
	Risk               policy.ToolRisk
	Effect             envelope.Effect
	MaxAttempts        int
	Retry              catalog.Retry
	Recipients, Scopes []string
	Drifted, Moved     bool
	Drift              catalog.Drift
	Quarantined        bool
	Accepted           []byte
	Described          catalog.Description
	Reversal           *catalog.Reversal
}

func settingsOf(t *catalog.Tool) toolSettings {
	return toolSettings{
		Risk: t.Risk, Effect: t.Effect, MaxAttempts: t.MaxAttempts, Retry: t.Retry, Scopes: t.Scopes, Drifted: t.Drifted(), Moved: t.Moved, Drift: t.Drift,
		Quarantined: t.Quarantined, Accepted: t.Accepted, Described: t.Described, Reversal: t.Reversal,
		Recipients: mapped(t.Recipients, contact.Pattern.String),
	}
}

func (c *comparison) compareTools() {
	now := make(map[policy.Key]*catalog.Tool, len(c.after.Tools))
	for _, t := range c.after.Tools {
		now[t.Key] = t
	}
	for _, t := range c.before.Tools {
		if is, ok := now[t.Key]; ok {
			c.compareTool(t.Key, settingsOf(t), settingsOf(is))
		}
	}
}

func (c *comparison) compareTool(key policy.Key, was, is toolSettings) {
	if same(was, is) {
		return
	}
	c.add(key, false, of("settings", key))
	for _, part := range []struct {
		name    string
		loosens bool
	}{
		{"the risk", riskRank(is.Risk) < riskRank(was.Risk) || is.Risk != was.Risk && c.rulesLookAt("risk")},
		{"the effect class", effectRank(is.Effect) < effectRank(was.Effect) || is.Effect != was.Effect && c.rulesLookAt("effect")},
		{"recipients", !containsAll(is.Recipients, was.Recipients)},
		{"scopes", !containsAll(is.Scopes, was.Scopes)},
		{"the drift or quarantine", was.Drifted && !is.Drifted || was.Moved && !is.Moved || was.Drift != catalog.DriftNone && is.Drift == catalog.DriftNone ||
			was.Quarantined && !is.Quarantined || len(was.Accepted) == 0 && len(is.Accepted) > 0},
		// People decide by the line that it shows first.
		{"the headline", is.Described.Headline != was.Described.Headline},
		// Reversals run under an automation of their own, which may have modes.
		{"the reversal", is.Reversal != nil && !same(was.Reversal, is.Reversal)},
	} {
		if part.loosens {
			c.add(key, true, of(part.name, key))
		}
	}
}

// compareToolRules compares settings of tools. compareTools compares the
// derived values of listed tools; a tool may also have settings while its
// source does not list it.
func (c *comparison) compareToolRules() {
	listed := make(map[policy.Key]bool, len(c.after.Tools))
	for _, t := range c.after.Tools {
		listed[t.Key] = true
	}
	compare(c.before.Limits.Tools, c.after.Limits.Tools, limits.ToolRule.Key, func(was, is *limits.ToolRule) {
		key := either(was, is).Key()
		c.add(key, !listed[key] && loosensToolRule(was, is), of("recipients or scopes", key))
	})
}

// loosensToolRule compares the settings of a tool that is not listed; nil is
// nothing. Where no recipients are set they are guessed when it is.
func loosensToolRule(was, is *limits.ToolRule) bool {
	before, after := postgres.OrZero(was), postgres.OrZero(is)
	if !containsAll(after.Scopes, before.Scopes) {
		return true
	}
	if before.Recipients == nil || after.Recipients == nil {
		return before.Recipients != after.Recipients
	}
	return !containsAll(*after.Recipients, *before.Recipients)
}

// containsAll reports whether list contains all elements of other.
func containsAll(list, other []string) bool {
	return !slices.ContainsFunc(other, func(text string) bool { return !slices.Contains(list, text) })
}

// namedSnapshot is a snapshot rule with its tool.
type namedSnapshot struct {
	Key  policy.Key
	Rule catalog.SnapshotRule
}

func (c *comparison) compareSnapshots() {
	list := func(all map[policy.Key]catalog.SnapshotRule) []namedSnapshot {
		var rules []namedSnapshot
		for key, r := range all {
			rules = append(rules, namedSnapshot{key, r})
		}
		slices.SortFunc(rules, func(a, b namedSnapshot) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
		return rules
	}
	compare(list(c.before.Snapshots), list(c.after.Snapshots), func(s namedSnapshot) policy.Key { return s.Key }, func(was, is *namedSnapshot) {
		// Without the read that a rule requires, a call is not made.
		c.add(either(was, is).Key, was != nil && was.Rule.Required, of("the snapshot rule", either(was, is).Key))
	})
}
