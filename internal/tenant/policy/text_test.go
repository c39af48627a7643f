package policy_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestSourceText(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]string{
		policy.LayerInferred:        "the default for the tool's risk",
		"org_default+arguments:big": "the organisation's mode; a rule about arguments (big)",
		policy.LayerDoNotContact:    "the do-not-contact list",
		"":                          "",
	} {
		if got := policy.SourceText(source); got != want {
			t.Errorf("SourceText(%q) = %q, want %q", source, got, want)
		}
	}
}
