package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestDenialNamesWhatDecided(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct{ source, trace, want string }{
		"a reason": {
			"arguments",
			`[{"layer":"organisation","said":"allow","key":"mail:*"},{"layer":"arguments","said":"deny","rule":"big","key":"pay:*","detail":"more than 100"}]`,
			"arguments; layer arguments (rule big) says deny: more than 100",
		},
		"a key": {"organisation", `[{"layer":"organisation","said":"deny","key":"mail:*"}]`, "organisation; layer organisation says deny: mail:*"},
		"two layers": {
			"scopes", `[{"layer":"scopes","said":"deny","detail":"missing mail"},{"layer":"quarantine","said":"deny"},{"layer":"trust"}]`,
			"scopes; layer scopes says deny: missing mail; layer quarantine says deny",
		},
		"no layer":                      {"inferred", `[{"layer":"inferred","said":"allow"}]`, "inferred"},
		"a trace that cannot be read":   {"inferred", `{`, "inferred"},
		"an envelope without any trace": {"inferred", ``, "inferred"},
	} {
		if got := policy.Denial(row.source, policy.Denying(json.RawMessage(row.trace))); got != row.want {
			t.Errorf("%s: Denial() = %q, want %q", name, got, row.want)
		}
	}
}
