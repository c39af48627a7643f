package limits

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// ToolRule is what an operator says about a tool, beside its overrides of risk
// and effect.
type ToolRule struct {
	Source, Name string
	// Recipients are JSON Pointer patterns to whom the arguments address, such
	// as /to/* or /message/channel; none means that it addresses nobody. Nil
	// leaves it to a guess from the tool's schema.
	Recipients *[]string
	// Scopes are what an employee must have to use it.
	Scopes []string
	Retry  Retry
	// Timeout is how long a call may go without an answer or progress, 1s to 1h; zero
	// leaves it to the source.
	Timeout Duration
}

// toolRuleJSON is a rule as it is written, with the tool as source:name.
type toolRuleJSON struct {
	Tool       policy.Key `json:"tool"`
	Recipients *[]string  `json:"recipients,omitempty"`
	Scopes     []string   `json:"scopes,omitempty"`
	Retry      Retry      `json:"retry,omitzero"`
	Timeout    Duration   `json:"timeout,omitzero"`
}

// MarshalJSON writes the tool as source:name.
func (r ToolRule) MarshalJSON() ([]byte, error) {
	return json.Marshal(toolRuleJSON{r.Key(), r.Recipients, r.Scopes, r.Retry, r.Timeout})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *ToolRule) UnmarshalJSON(text []byte) error {
	var in toolRuleJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*r = ToolRule{in.Tool.Source, in.Tool.Action, in.Recipients, in.Scopes, in.Retry, in.Timeout}
	return nil
}

// Key names the tool.
func (r ToolRule) Key() policy.Key { return policy.Key{Source: r.Source, Action: r.Name} }

func (r ToolRule) key() string { return r.Key().String() }

// Retry is when a failed attempt is made again. Its zero fields are left to
// the defaults.
type Retry struct {
	// MaxAttempts is how many attempts are made in all, 1 to 100.
	MaxAttempts int `json:"max_attempts,omitzero"`
	// Base is the first pause, which doubles with every attempt up to Cap.
	Base Duration `json:"base,omitzero"`
	Cap  Duration `json:"cap,omitzero"`
	// Jitter is the share of a pause, 0 to 1, by which chance makes it shorter
	// or longer. Nil is the default.
	Jitter *float64 `json:"jitter,omitempty"`
}

// The bounds of a rule.
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
	r.Retry.check(&p)
	if r.Timeout != 0 && (r.Timeout < minTimeout || r.Timeout > maxTimeout) {
		p.Add("/timeout", envelope.RuleFormat, "must be from 1s to 1h")
	}
	return p.Err()
}

func (r Retry) check(p *check.Problems) {
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

// empty reports whether the rule leaves everything to the defaults.
func (r ToolRule) empty() bool {
	return r.Recipients == nil && len(r.Scopes) == 0 && r.Retry == (Retry{}) && r.Timeout == 0
}

// settled is the rule with its scopes in order.
func (r ToolRule) settled() ToolRule {
	r.Scopes = ordered(r.Scopes)
	return r
}
