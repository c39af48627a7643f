package worker

import (
	"bytes"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/internal/policy"
)

// verdict is what is to be done with a claimed envelope: end it, send it to a
// person, or, if neither is set, call the tool.
type verdict struct {
	end *outbox.Settlement
	// park is the digest of the tool's definition that the person decides
	// about.
	park []byte
}

// judge decides the second time, just before the call: the world may have
// moved since the envelope was let through.
func judge(it *outbox.Item, snap *catalog.Snapshot) verdict {
	if it.Sending && it.Effect == envelope.EffectOnce {
		return end(outbox.Lose(*it))
	}
	if it.Lost > outbox.MaxLost {
		return end(outbox.Poison(*it))
	}
	if a := gate.Check(gate.Facts{PastDeadline: it.TooLate}); a.Verdict == gate.Skip {
		return end(outbox.Skip(*it, a.Code, a.Message))
	}
	if it.ConfigVersion == snap.Version {
		return verdict{} // nothing that policy depends on has changed
	}
	tool, ok := snap.Tool(policy.Key{Source: it.Source, Action: it.Tool})
	if !ok {
		return end(outbox.Skip(*it, "tool_gone", "its source no longer has the tool"))
	}
	granted := it.Approval == envelope.ApprovalGranted
	changed := !bytes.Equal(tool.Digest, it.ToolDigest)
	if granted && changed {
		return end(outbox.Skip(*it, "tool_changed", "the tool's definition changed after it was approved"))
	}
	switch snap.Decide(tool, it.Automation, false).Mode {
	case envelope.ModeDeny:
		return end(outbox.Skip(*it, "policy_denied", "policy denies the tool by now"))
	case envelope.ModeRequireApproval:
		if !granted {
			return verdict{park: tool.Digest}
		}
	case envelope.ModeAllow:
	}
	return verdict{}
}

func end(s outbox.Settlement) verdict { return verdict{end: &s} }
