package envelope

// Risk is the possible harm of an action.
type Risk string

// The risks.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// Valid reports whether r is one of the constants.
func (r Risk) Valid() bool {
	switch r {
	case RiskLow, RiskMedium, RiskHigh:
		return true
	}
	return false
}

// Effect is the effect class of a call: whether it may be repeated after an
// outcome that is not known.
type Effect string

// The effects.
const (
	// EffectRead changes nothing: repeat at will.
	EffectRead Effect = "read"
	// EffectIdempotent changes the same thing to the same state again: repeat.
	EffectIdempotent Effect = "idempotent"
	// EffectKeyed is done once per idempotency key by its source: repeat under
	// the same key.
	EffectKeyed Effect = "keyed"
	// EffectOnce is everything else: a call that may have happened is never
	// repeated.
	EffectOnce Effect = "once"
)

// Valid reports whether e is one of the constants.
func (e Effect) Valid() bool {
	switch e {
	case EffectRead, EffectIdempotent, EffectKeyed, EffectOnce:
		return true
	}
	return false
}

// Mode is the decision of policy about an action.
type Mode string

// The modes.
const (
	// ModeAllow lets it run without a person.
	ModeAllow Mode = "allow"
	// ModeRequireApproval makes the action wait for approval.
	ModeRequireApproval Mode = "require_approval"
	// ModeDeny refuses it.
	ModeDeny Mode = "deny"
)

// Valid reports whether m is one of the constants.
func (m Mode) Valid() bool {
	switch m {
	case ModeAllow, ModeRequireApproval, ModeDeny:
		return true
	}
	return false
}
