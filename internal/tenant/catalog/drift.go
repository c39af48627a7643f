package catalog

import (
	"bytes"
	"cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// DriftGuard says which changes of a source's definitions need a person.
type DriftGuard string

// The drift guards.
const (
	// GuardFull is any change: descriptions are text that an agent obeys.
	GuardFull DriftGuard = "full"
	// GuardInterface leaves out changes of texts that only describe, for
	// sources that are trusted to word them.
	GuardInterface DriftGuard = "interface"
)

// Drift is how far a definition is from the accepted one.
type Drift string

// The levels of drift.
const (
	// DriftNone says that the definition is the accepted one.
	DriftNone Drift = "none"
	// DriftText says that only texts differ which describe.
	DriftText Drift = "text"
	// DriftInterface says that a call may mean something else, or that nobody
	// can say: there is no accepted definition to compare with.
	DriftInterface Drift = "interface"
)

// Drifted reports whether the definition is not the accepted one, as far as its
// source's guard looks, or its source is not where it was accepted. A tool that waits in quarantine for its first
// acceptance has not drifted.
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

// claims are the hints that risk and effect are inferred from: those of the
// source and, while the definition is not the accepted one, also those that
// were accepted, whichever promise less. Else a source could take the danger
// out of a tool by a word.
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

// infer sets what follows from the definition, an operator's overrides, what
// the adapter vouches for and the source's default.
func (t *Tool) infer(o Overrides, vouched envelope.Effect, sourceDefault policy.ToolRisk) {
	claims := t.claims()
	hints := policy.Hints{ReadOnly: claims.ReadOnly, Destructive: claims.Destructive != nil && *claims.Destructive}
	t.Risk = policy.InferRisk(o.Risk, hints, sourceDefault)
	t.Effect = policy.InferEffect(cmp.Or(o.Effect, vouched), t.Risk, hints)
}
