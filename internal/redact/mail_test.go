package redact_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/redact"
)

func TestMail(t *testing.T) {
	t.Parallel()
	const args = `{"emails":["ann@example.com"],"at":{"start":"2026-02-15"},"alarm_minutes":15,"whole":true}`
	for external, want := range map[string]string{
		"":                  args,
		"triage:0123":       args,
		"mine-triage:tag:1": args,
		"triage:tag:0123":   `{"alarm_minutes":15,"at":{"start":"[REDACTED]"},"emails":["[REDACTED]"],"whole":true}`,
	} {
		if got := redact.Mail(external, json.RawMessage(args)); string(got) != want {
			t.Errorf("Mail(%q) = %s, want %s", external, got, want)
		}
	}
	for in, want := range map[string]string{``: ``, `{`: `"[REDACTED]"`, `"hush"`: `"[REDACTED]"`} {
		if got := redact.Mail("triage:tag:0", json.RawMessage(in)); string(got) != want {
			t.Errorf("Mail(%s) = %s, want %s", in, got, want)
		}
	}
}
