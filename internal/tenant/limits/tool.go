package limits

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// ToolRule is a rule of operators about a tool, in addition to its overrides of
// risk and effect.
type ToolRule struct {
	Source, Name string
	// Recipients are JSON Pointer patterns for the recipients in the arguments,
	// such as /to/* or /message/channel; an empty list means that there are
	// none. Nil infers them from the tool's schema.
	Recipients *[]string
	// Scopes are the scopes that an employee needs to use it.
	Scopes []string
	Retry  wire.Retry
	// Timeout bounds the time of a call without an answer or progress, 1s to 1h;
	// zero means the default of the source.
	Timeout Duration
}

// toolRuleJSON is the JSON form of a rule, with the tool as source:name.
type toolRuleJSON struct {
	Tool       policy.Key `json:"tool"`
	Recipients *[]string  `json:"recipients,omitempty"`
	Scopes     []string   `json:"scopes,omitempty"`
	Retry      wire.Retry `json:"retry,omitzero"`
	Timeout    Duration   `json:"timeout,omitzero"`
}

// MarshalJSON encodes the tool as source:name.
func (r ToolRule) MarshalJSON() ([]byte, error) {
	return json.Marshal(toolRuleJSON{r.Key(), r.Recipients, r.Scopes, r.Retry, r.Timeout})
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (r *ToolRule) UnmarshalJSON(text []byte) error {
	var in toolRuleJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*r = ToolRule{in.Tool.Source, in.Tool.Action, in.Recipients, in.Scopes, in.Retry, in.Timeout}
	return nil
}

// Key returns the key of the tool.
func (r ToolRule) Key() policy.Key { return policy.Key{Source: r.Source, Action: r.Name} }

func (r ToolRule) key() string { return r.Key().String() }

// Bounds of a rule.
const (
	maxAttempts = 100
	minPause    = Duration(time.Millisecond)
	maxBase     = Duration(day)
	maxCap      = Duration(7 * day)
	minTimeout  = Duration(time.Second)
	maxTimeout  = Duration(time.Hour)
)

// Validate checks a rule. The error is an *envelope.InvalidError.
func (r ToolRule) Validate() error {
	var p check.Problems
	if !check.Slug(r.Source) {
		p.Add("/tool", envelope.RulePattern, "must be the id of a source")
	}
	if r.Name == "" {
		p.Add("/tool", envelope.RuleRequired, "must be the tool's name at its source")
	}
	p.Text("/tool", r.Name)
	if r.Recipients != nil {
		_, err := contact.ParsePatterns(*r.Recipients)
		if err := p.Below("/recipients", err); err != nil {
			return err
		}
	}
	checkScopes(&p, r.Scopes)
	checkRetry(&p, r.Retry)
	if r.Timeout != 0 && (r.Timeout < minTimeout || r.Timeout > maxTimeout) {
		p.Add("/timeout", envelope.RuleFormat, "must be from 1s to 1h")
	}
	return p.Err()
}

func checkRetry(p *check.Problems, r wire.Retry) {
	if r.MaxAttempts != 0 {
		p.Within("/retry/max_attempts", r.MaxAttempts, 1, maxAttempts)
	}
	if r.Base != 0 && (r.Base < minPause || r.Base > maxBase) {
		p.Add("/retry/base", envelope.RuleFormat, "must be from 1ms to 1d")
	}
	if r.Cap != 0 && (r.Cap < minPause || r.Cap > maxCap) {
		p.Add("/retry/cap", envelope.RuleFormat, "must be from 1ms to 7d")
	}
	if r.Base != 0 && r.Cap != 0 && r.Cap < r.Base {
		p.Add("/retry/cap", check.RuleOrder, "must not be shorter than base")
	}
	if r.Jitter != nil && !(*r.Jitter >= 0 && *r.Jitter <= 1) {
		p.Add("/retry/jitter", check.RuleMaximum, "must be from 0 to 1: the share of a pause that chance may add or take")
	}
}

// empty reports whether the rule has only defaults.
func (r ToolRule) empty() bool {
	return r.Recipients == nil && len(r.Scopes) == 0 && r.Retry == (wire.Retry{}) && r.Timeout == 0
}

// settled returns the rule with its scopes sorted.
func (r ToolRule) settled() ToolRule {
	r.Scopes = ordered(r.Scopes)
	return r
}
