package actions

import (
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

func TestBecause(t *testing.T) {
	t.Parallel()
	inferred := wire.PolicyStep{Layer: "inferred_default", Said: "require_approval", Detail: "risk write"}
	for name, c := range map[string]struct {
		decision wire.PolicyDecision
		want     string
	}{
		"only the risk": {
			wire.PolicyDecision{Mode: envelope.ModeRequireApproval, Source: "inferred_default", Trace: []wire.PolicyStep{{Layer: "org_default"}, inferred}},
			"the default for the tool's risk: risk write",
		},
		"a rule denies what else would wait": {
			wire.PolicyDecision{Mode: envelope.ModeDeny, Source: "inferred_default+arguments:cap", Trace: []wire.PolicyStep{
				inferred, {Layer: "arguments", Said: "deny", Tool: "shop:refund", Rule: "cap", Detail: "too much"},
			}},
			"a rule about arguments (cap) for shop:refund: too much",
		},
		"two layers ask": {
			wire.PolicyDecision{Mode: envelope.ModeRequireApproval, Source: "inferred_default", Trace: []wire.PolicyStep{
				inferred, {Layer: "drift", Said: "require_approval", Detail: "the definition is not the accepted one"},
			}},
			"the default for the tool's risk: risk write; the tool's definition, or the address of its source, changed: the definition is not the accepted one",
		},
		"a mode": {
			wire.PolicyDecision{Mode: envelope.ModeAllow, Source: "org_default", Trace: []wire.PolicyStep{{Layer: "org_default", Said: "allow", Tool: "shop:*"}}},
			"the organisation's mode for shop:*",
		},
		"nothing on record": {wire.PolicyDecision{Mode: envelope.ModeDeny, Source: "unknown_mode:x"}, "unknown mode (x)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := because(c.decision); got != c.want {
				t.Errorf("because is %q, want %q", got, c.want)
			}
		})
	}
}
