package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

func TestLoggerHidesSecrets(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelInfo).With(slog.String("api_key", "hunter1"))

	log.InfoContext(t.Context(), "call made",
		slog.String("Authorization", "hunter2"),
		slog.Int("password", 42424242),
		slog.Group("headers", slog.String("x-api-key", "hunter3"), slog.String("accept", "json")),
		slog.Group("credentials", slog.String("user", "hunter4")),
		slog.String("tool", "send"),
	)

	line := out.String()
	if strings.Contains(line, "hunter") || strings.Contains(line, "42424242") {
		t.Errorf("log holds a secret: %s", line)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("log line is no JSON: %v", err)
	}
	if got["tool"] != "send" || got["msg"] != "call made" || got["headers"].(map[string]any)["accept"] != "json" {
		t.Errorf("log lost what is no secret: %s", line)
	}
}

func TestLoggerObeysItsLevel(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelWarn)

	log.InfoContext(t.Context(), "not this")
	log.WarnContext(t.Context(), "but this")

	if got := out.String(); strings.Contains(got, "not this") || !strings.Contains(got, "but this") {
		t.Errorf("log = %s, want only the warning", got)
	}
}
