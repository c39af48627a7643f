package policy

import "github.com/countersign-dev/countersign/envelope"

// ToolRisk is the extent of a tool's changes. It belongs to the tool; the
// risk on an envelope (low, medium, high) belongs to one proposal.
type ToolRisk string

// The risks of a tool.
const (
	// RiskRead means that the tool changes nothing.
	RiskRead ToolRisk = "read"
	// RiskWrite means that the tool changes something. It is the default risk of
	// a tool.
	RiskWrite ToolRisk = "write"
	// RiskDanger means that the tool destroys something or cannot be reverted.
	RiskDanger ToolRisk = "danger"
)

// Hints are a source's claims about its own tool. A field is true only if the
// source claimed it explicitly. There is no idempotency hint, since it is never
// trusted.
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

// Mode returns the inferred mode of a risk: read is allowed, write needs
// approval, danger and unknown risks are denied. Input.Danger can change the
// mode of danger.
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

// Envelope returns the minimum risk of an envelope for this tool: low for read,
// medium for write, high for danger and unknown risks.
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

// InferRisk returns a tool's risk. An operator's override comes first, then the
// source's hints (destructive before read-only, so that a tool with both is
// dangerous), then the source's default, then write. An invalid override or
// default makes the tool dangerous.
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

// RaiseRisk returns the risk of an envelope for the risk that its agent
// requested: the higher of the two, so that an agent can raise the risk but not
// lower it. Without a request it is the tool's; an invalid value counts as high.
func RaiseRisk(asked, tool envelope.Risk) envelope.Risk {
	if asked != "" && RiskRank(asked) > RiskRank(tool) {
		tool = asked
	}
	if !tool.Valid() {
		return envelope.RiskHigh
	}
	return tool
}

// RiskRank ranks the risks of envelopes. An invalid risk ranks as high.
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

// InferEffect returns a tool's effect class. An override comes from an operator
// or from an adapter that can determine it. Without one, a tool that its source
// claims to be read-only, and whose risk is also read, is a read; every other
// tool has the class once. An invalid override counts as once.
func InferEffect(override envelope.Effect, risk ToolRisk, hints Hints) envelope.Effect {
	switch {
	case override.Valid():
		return override
	case override == "" && hints.ReadOnly && risk == RiskRead:
		return envelope.EffectRead
	}
	return envelope.EffectOnce
}
