package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestBecauseNamesTheLayersThatDecided(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct{ source, trace, want string }{
		"a reason": {
			"arguments",
			`[{"layer":"organisation","said":"allow","tool":"mail:*"},{"layer":"arguments","said":"deny","rule":"big","tool":"pay:*","detail":"more than 100"}]`,
			"a rule about arguments (big) for pay:*: more than 100",
		},
		"a key": {"org_default", `[{"layer":"org_default","said":"deny","tool":"mail:*"}]`, "the organisation's mode for mail:*"},
		"two layers": {
			"scopes", `[{"layer":"scopes","said":"deny","detail":"missing mail"},{"layer":"quarantine","said":"deny"},{"layer":"trust"}]`,
			"the employee's scopes: missing mail; a new tool that is not accepted yet",
		},
		"no layer":                      {"inferred_default", `[{"layer":"inferred_default","said":"allow"}]`, "the default for the tool's risk"},
		"a trace that cannot be read":   {"inferred_default", `{`, "the default for the tool's risk"},
		"an envelope without any trace": {"inferred_default", ``, "the default for the tool's risk"},
	} {
		if got := policy.Because(envelope.ModeDeny, row.source, policy.Denying(json.RawMessage(row.trace))); got != row.want {
			t.Errorf("%s: Because() = %q, want %q", name, got, row.want)
		}
	}
}
