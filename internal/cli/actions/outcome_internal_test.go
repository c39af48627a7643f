package actions

import (
	"testing"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

func TestBecause(t *testing.T) {
	t.Parallel()
	inferred := client.Step{Layer: "inferred_default", Said: "require_approval", Detail: "risk write"}
	for name, c := range map[string]struct {
		verdict client.Verdict
		want    string
	}{
		"only the risk": {
			client.Verdict{Mode: envelope.ModeRequireApproval, Source: "inferred_default", Trace: []client.Step{{Layer: "org_default"}, inferred}},
			"inferred_default, risk write",
		},
		"a rule denies what else would wait": {
			client.Verdict{Mode: envelope.ModeDeny, Source: "inferred_default+arguments:cap", Trace: []client.Step{
				inferred, {Layer: "arguments", Said: "deny", Key: "shop:refund", Rule: "cap", Detail: "too much"},
			}},
			"inferred_default+arguments:cap, rule shop:refund: too much",
		},
		"two layers ask": {
			client.Verdict{Mode: envelope.ModeRequireApproval, Source: "inferred_default", Trace: []client.Step{
				inferred, {Layer: "drift", Said: "require_approval", Detail: "the definition is not the accepted one"},
			}},
			"inferred_default, risk write, the definition is not the accepted one",
		},
		"a mode": {
			client.Verdict{Mode: envelope.ModeAllow, Source: "org_default", Trace: []client.Step{{Layer: "org_default", Said: "allow", Key: "shop:*"}}},
			"org_default, rule shop:*",
		},
		"nothing on record": {client.Verdict{Mode: envelope.ModeDeny, Source: "unknown_mode:x"}, "unknown_mode:x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := because(c.verdict); got != c.want {
				t.Errorf("because is %q, want %q", got, c.want)
			}
		})
	}
}
