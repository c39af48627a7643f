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
	end  *outbox.Settlement
	park bool
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
	if !bytes.Equal(tool.Digest, it.ToolDigest) && tool.Drifted() {
		return verdict{park: true}
	}
	switch snap.Decide(tool, it.Automation, false).Mode {
	case envelope.ModeDeny:
		return end(outbox.Skip(*it, "policy_denied", "policy denies the tool by now"))
	case envelope.ModeRequireApproval:
		return verdict{park: it.Approval != envelope.ApprovalGranted}
	case envelope.ModeAllow:
	}
	return verdict{}
}

func end(s outbox.Settlement) verdict { return verdict{end: &s} }
