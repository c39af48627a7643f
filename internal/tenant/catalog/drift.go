package catalog

import (
	"bytes"
	"cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// DriftGuard selects the changes of a source's definitions that need a person.
type DriftGuard string

// The drift guards.
const (
	// GuardFull selects any change: descriptions are text that an agent obeys.
	GuardFull DriftGuard = "full"
	// GuardInterface ignores changes of descriptive texts, for sources that are
	// trusted with them.
	GuardInterface DriftGuard = "interface"
)

// Drift is the difference between a definition and the accepted one.
type Drift string

// The levels of drift.
const (
	// DriftNone means that the definition is the accepted one.
	DriftNone Drift = "none"
	// DriftText means that only descriptive texts differ.
	DriftText Drift = "text"
	// DriftInterface means that the meaning of a call may have changed, or is
	// unknown because no definition was accepted.
	DriftInterface Drift = "interface"
)

// Drifted reports whether the definition differs from the accepted one at the
// level of its source's guard, or its source has moved. A tool in quarantine,
// which was never accepted, has not drifted.
func (t *Tool) Drifted() bool {
	if t.Quarantined {
		return false
	}
	return t.Moved || t.Drift == DriftInterface || t.Drift == DriftText && t.Guard != GuardInterface
}

// drift compares the tool's definition with the accepted one.
func (t *Tool) drift() Drift {
	switch {
	case t.Lists(t.Accepted):
		return DriftNone
	case t.AcceptedDefinition == nil:
		return DriftInterface
	}
	was, errWas := interfaceDigest(t.Key.Action, *t.AcceptedDefinition)
	is, errIs := interfaceDigest(t.Key.Action, t.Definition)
	if errWas != nil || errIs != nil || !bytes.Equal(was, is) {
		return DriftInterface
	}
	return DriftText
}

// claims returns the hints from which risk and effect are inferred: those of the
// source and, while the definition is not the accepted one, the less favourable
// of these and the accepted hints. Otherwise a source could make a dangerous
// tool look harmless.
func (t *Tool) claims() source.Hints {
	h := t.Hints
	if t.Drift == DriftNone || t.AcceptedDefinition == nil {
		return h
	}
	was := t.AcceptedDefinition.Hints
	h.ReadOnly = h.ReadOnly && was.ReadOnly
	h.Idempotent = h.Idempotent && was.Idempotent
	if was.Destructive != nil && *was.Destructive {
		h.Destructive = was.Destructive
	}
	return h
}

// infer sets the values derived from the definition, an operator's overrides,
// the adapter's effect class and the source's default.
func (t *Tool) infer(o Overrides, vouched envelope.Effect, sourceDefault policy.ToolRisk) {
	claims := t.claims()
	hints := policy.Hints{ReadOnly: claims.ReadOnly, Destructive: claims.Destructive != nil && *claims.Destructive}
	t.Risk = policy.InferRisk(o.Risk, hints, sourceDefault)
	t.Effect = policy.InferEffect(cmp.Or(o.Effect, vouched), t.Risk, hints)
}
