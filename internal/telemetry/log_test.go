package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestDurationsAreLoggedInMilliseconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer

	telemetry.NewLogger(&out, slog.LevelInfo).Info("call made", slog.Duration("took", 17_421_447*time.Nanosecond))

	if text := out.String(); !strings.Contains(text, `"took_ms":17.421}`) {
		t.Errorf("log = %s, want took_ms", text)
	}
}

func TestRepeatedMessageIsLoggedOncePerInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(telemetry.WithoutRepeats(telemetry.NewLogger(&out, slog.LevelInfo).Handler(), time.Minute))
		component := log.With(slog.String("component", "listener"))

		for range 5 {
			log.Error("database away")
			component.Error("database away")
			log.Error("another")
		}
		time.Sleep(time.Minute)
		log.Error("database away")

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[2], `"msg":"database away","repeated":9}`) {
			t.Errorf("log =\n%s\nwant each message once, and the first again with the number left out", out.String())
		}
	})
}
