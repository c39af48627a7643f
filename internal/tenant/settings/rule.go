package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Bounds of a tenant's policy.
const (
	// maxRules bounds the rules about arguments.
	maxRules = 200
	// MaxSessionMode is the maximum duration of a session's mode, and
	// maxSessionModes the maximum number of active ones.
	MaxSessionMode  = 30 * 24 * time.Hour
	maxSessionModes = 10_000
	// maxPreferences bounds the preferences.
	maxPreferences = 10_000
)

// Mode is a stored rule of policy.
type Mode struct {
	// Automation is empty for a mode of the organisation.
	Automation string `json:"automation_id,omitzero"`
	// Pattern and Mode are stored texts. Another version may have written values
	// that are invalid in this one; they deny.
	Pattern string `json:"tool"`
	Mode    string `json:"mode"`
	LastChange
}

// LastChange is the last change of a row. The database sets it; documents omit
// it. Its version is the tenant's, as in traces.
type LastChange = wire.Change

// Rule is a stored rule about arguments.
type Rule struct {
	ID string `json:"rule_id"`
	// Automation is empty for a rule of the organisation, which applies to all.
	Automation string `json:"automation_id,omitzero"`
	// Pattern, Expression and Mode are stored texts, as in Mode.
	Pattern    string `json:"tool"`
	Expression string `json:"expression"`
	Mode       string `json:"mode"`
	// Reason is shown if the rule applies.
	Reason  string `json:"reason,omitzero"`
	Enabled bool   `json:"enabled"`
	LastChange
}

// UnmarshalJSON decodes a rule, which is enabled by default.
func (r *Rule) UnmarshalJSON(text []byte) error {
	type fields Rule // without this method
	in := fields{Enabled: true}
	err := json.Unmarshal(text, &in)
	*r = Rule(in)
	return err
}

func (r Rule) compiled() policy.ArgumentRule {
	return policy.ArgumentRule{
		ID: r.ID, Automation: r.Automation, Key: r.Pattern, Expression: r.Expression, Mode: r.Mode, Reason: r.Reason,
		Version: versionText(r.Version),
	}
}

// SessionMode is the mode of a session for the tools that a pattern covers.
type SessionMode struct {
	Session   string        `json:"session_id"`
	Pattern   string        `json:"tool"`
	Mode      envelope.Mode `json:"mode"`
	ExpiresAt time.Time     `json:"expires_at"`
	LastChange
}

// Preference disables the tools that a pattern covers.
type Preference struct {
	// Employee is the employee; the zero value means everybody.
	Employee envelope.EmployeeID `json:"employee_id,omitzero"`
	Pattern  string              `json:"tool"`
	// SetBy is the person who disabled them first; zero if unknown. It does not
	// change while they are disabled.
	SetBy uuid.UUID `json:"-"`
	LastChange
}

// versionText returns the form of a version in traces; rows from before there
// were versions have none.
func versionText(version int64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatInt(version, 10)
}

// layers holds the inputs of the layers of policy, except the modes.
type layers struct {
	language  func() (*policy.Language, error)
	arguments policy.Arguments
	sessions  map[string]sessionRules
	everybody policy.Rules
	personal  map[envelope.EmployeeID]policy.Rules
	grants    map[policy.Key][]liveGrant
}

// setModes replaces the modes.
func (s *Settings) setModes(modes []Mode) {
	rules := make(map[string][]policy.Rule)
	for _, m := range modes {
		rules[m.Automation] = append(rules[m.Automation], policy.Rule{Key: m.Pattern, Mode: m.Mode, Version: versionText(m.Version)})
	}
	for automation, rows := range rules {
		s.automations[automation] = policy.Compile(rows)
	}
	s.organisation = s.automations[""]
	delete(s.automations, "")
}

// setRules replaces the rules about arguments.
func (b *layers) setRules(rules []Rule) {
	var rows []policy.ArgumentRule
	for _, r := range rules {
		if r.Enabled {
			rows = append(rows, r.compiled())
		}
	}
	b.arguments = policy.CompileArguments(b.language, rows)
}

// setPreferences replaces the preferences.
func (b *layers) setPreferences(preferences []Preference) {
	rows := make(map[envelope.EmployeeID][]policy.Rule)
	for _, p := range preferences {
		rows[p.Employee] = append(rows[p.Employee], policy.Rule{Key: p.Pattern, Mode: string(envelope.ModeDeny), Version: versionText(p.Version)})
	}
	b.personal = make(map[envelope.EmployeeID]policy.Rules, len(rows))
	for employee, rules := range rows {
		b.personal[employee] = policy.Compile(rules)
	}
	b.everybody = b.personal[envelope.EmployeeID{}]
	delete(b.personal, envelope.EmployeeID{})
}

// With returns a copy of the settings with a changed policy. It stores nothing.
func (s *Settings) With(change Document) *Settings {
	changed := *s
	changed.decider = policy.NewDecider()
	if change.Modes != nil {
		changed.automations = make(map[string]policy.Rules)
		changed.setModes(change.Modes)
		for automation, rules := range s.automations {
			if reserved(automation) {
				changed.automations[automation] = rules
			}
		}
	}
	if change.Danger != "" {
		changed.danger = change.Danger
	}
	if change.Rules != nil {
		changed.layers.setRules(change.Rules)
	}
	if change.Preferences != nil {
		changed.layers.setPreferences(change.Preferences)
	}
	if change.Reviews != nil {
		reviews := make([]ReviewRule, len(change.Reviews))
		for i, r := range change.Reviews {
			reviews[i] = r.settled()
		}
		changed.reviews = compileReviews(reviews)
	}
	return &changed
}

// WithGrant returns a copy of the settings with an additional grant that is
// valid from now.
func (s *Settings) WithGrant(g Grant, now time.Time) (*Settings, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	g.CreatedAt, g.ExpiresAt = now, now.Add(cmp.Or(g.For, DefaultGrant))
	changed := *s
	changed.decider = policy.NewDecider()
	changed.layers.grants = maps.Clone(s.layers.grants)
	for tool, live := range compileGrants([]Grant{g}) {
		if changed.layers.grants == nil {
			changed.layers.grants = make(map[policy.Key][]liveGrant)
		}
		changed.layers.grants[tool] = append(live, s.layers.grants[tool]...)
	}
	return &changed, nil
}

// checkMode checks the mode for a pattern. The error is fault.Invalid.
func checkMode(pattern string, mode envelope.Mode) error {
	if _, err := policy.ParsePattern(pattern); err != nil {
		return err
	}
	_, err := policy.ParseMode(string(mode))
	return err
}

// CheckRule reports whether a rule about arguments may be stored: its expression
// must compile, and may only name existing arguments if its pattern is one tool
// with a closed schema. The error is fault.Invalid, or an *envelope.InvalidError
// with the place in the expression.
func (s *Settings) CheckRule(r Rule) error {
	language, err := s.layers.language()
	if err != nil {
		return fmt.Errorf("rule %s: %w", r.ID, err)
	}
	return checkRule(r, language, policy.ShapeOf(s.inputSchema(r.Pattern)))
}

// CheckExpression returns the mistakes of an expression in a rule for a pattern,
// and the arguments that it may name.
func (s *Settings) CheckExpression(pattern, text string) ([]policy.Mistake, []policy.Name, error) {
	language, err := s.layers.language()
	if err != nil {
		return nil, nil, err
	}
	schema := s.inputSchema(pattern)
	_, found := language.Check(text, policy.ShapeOf(schema))
	return found, policy.ArgumentNames(schema), nil
}

// inputSchema returns the input schema of the tool of a pattern; nil unless it
// is one known tool.
func (s *Settings) inputSchema(pattern string) json.RawMessage {
	if key, err := policy.ParsePattern(pattern); err == nil {
		if t, ok := s.Tool(key); ok {
			return t.InputSchema
		}
	}
	return nil
}

func checkRule(r Rule, language *policy.Language, shape policy.Shape) error {
	if len(r.ID) == 0 || len(r.ID) > 100 {
		return fault.New(fault.Invalid, "a rule's id must have 1 to 100 characters")
	}
	return r.compiled().Check(language, shape)
}
