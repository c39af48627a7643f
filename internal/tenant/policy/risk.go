package policy

import "github.com/countersign-dev/countersign/envelope"

// ToolRisk is the extent of a tool's changes. It belongs to the tool; the
// risk on an envelope (low, medium, high) belongs to one proposal.
type ToolRisk string

// The risks of a tool.
const (
	// RiskRead changes nothing.
	RiskRead ToolRisk = "read"
	// RiskWrite changes something. It is the risk of a tool of which nothing
	// is known.
	RiskWrite ToolRisk = "write"
	// RiskDanger destroys something, or cannot be taken back.
	RiskDanger ToolRisk = "danger"
)

// Hints are those of a source about its own tool. A field is true only if the
// source said so in as many words. An idempotency hint has no place here: it
// is never trusted.
type Hints struct {
	ReadOnly    bool
	Destructive bool
}

// Valid reports whether r is one of the three risks.
func (r ToolRisk) Valid() bool {
	switch r {
	case RiskRead, RiskWrite, RiskDanger:
		return true
	}
	return false
}

// Mode returns the mode that P1 infers from a risk: read is allowed, write
// needs approval, danger and unknown risks are denied. Input.Danger can
// change what follows from danger.
func (r ToolRisk) Mode() envelope.Mode {
	switch r {
	case RiskRead:
		return envelope.ModeAllow
	case RiskWrite:
		return envelope.ModeRequireApproval
	case RiskDanger:
		return envelope.ModeDeny
	}
	return envelope.ModeDeny
}

// Envelope returns the risk that an envelope for this tool has at least: low
// for read, medium for write, high for danger and unknown risks.
func (r ToolRisk) Envelope() envelope.Risk {
	switch r {
	case RiskRead:
		return envelope.RiskLow
	case RiskWrite:
		return envelope.RiskMedium
	case RiskDanger:
		return envelope.RiskHigh
	}
	return envelope.RiskHigh
}

// InferRisk finds a tool's risk. An operator's override is asked first, then
// the source's hints (destructive before read-only, so that a tool that claims
// both is dangerous), then the source's default; a tool of which nothing is
// said is a write. An override or a default that is set and no risk makes the
// tool dangerous.
func InferRisk(override ToolRisk, hints Hints, sourceDefault ToolRisk) ToolRisk {
	switch {
	case override != "":
		return orDanger(override)
	case hints.Destructive:
		return RiskDanger
	case hints.ReadOnly:
		return RiskRead
	case sourceDefault != "":
		return orDanger(sourceDefault)
	}
	return RiskWrite
}

func orDanger(r ToolRisk) ToolRisk {
	if r.Valid() {
		return r
	}
	return RiskDanger
}

// RaiseRisk returns the risk of an envelope whose agent asked for one: the
// higher of the two, so that an agent can raise the risk and never lower it.
// An agent that asked for none gets the tool's; a value that is no risk
// counts as high.
func RaiseRisk(asked, tool envelope.Risk) envelope.Risk {
	if asked != "" && RiskRank(asked) > RiskRank(tool) {
		tool = asked
	}
	if !tool.Valid() {
		return envelope.RiskHigh
	}
	return tool
}

// RiskRank orders the risks of envelopes. A value that is no risk ranks as
// high.
func RiskRank(r envelope.Risk) int {
	switch r {
	case envelope.RiskLow:
		return 0
	case envelope.RiskMedium:
		return 1
	case envelope.RiskHigh:
	}
	return 2
}

// InferEffect finds a tool's effect class. An override comes from an operator
// or from the adapter that knows the provider. Without one, a tool whose
// source calls it read-only, and whose risk is read as well, is a read; every
// other tool has its effect once. An override that is no class counts as
// once.
func InferEffect(override envelope.Effect, risk ToolRisk, hints Hints) envelope.Effect {
	switch {
	case override.Valid():
		return override
	case override == "" && hints.ReadOnly && risk == RiskRead:
		return envelope.EffectRead
	}
	return envelope.EffectOnce
}
