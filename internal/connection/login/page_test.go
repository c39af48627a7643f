package login_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/connection/login"
)

func TestStatesOfThePageNameTheirSource(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"page.crm.dBjftJeZ4CVP":     "crm",
		"page.crm.eu.dBjftJeZ4CVP":  "crm.eu",
		"page.crm":                  "",
		"page..dBjftJeZ4CVP":        "",
		"dBjftJeZ4CVP":              "",
		"":                          "",
		"page.//evil.example/.dBjf": "//evil.example/",
	} {
		if got := login.SourceOf(state); got != want {
			t.Errorf("SourceOf(%q) = %q, want %q", state, got, want)
		}
	}
}
