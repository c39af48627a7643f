package telemetry_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

func TestSecretName(t *testing.T) {
	t.Parallel()

	secret := []string{
		"token", "Token", "access_token", "accessToken", "refresh-token", "client_secret", "clientSecret",
		"secret", "password", "passwd", "Authorization", "Proxy-Authorization", "api_key", "apikey", "X-API-Key",
		"private_key", "Cookie", "Set-Cookie", "credential", "credentials", "session_token", "bearer",
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "db.password", "DB_PASS", "smtp-pass", "MYSQL_PWD", "X-Amz-Signature",
		"jwt", "secrets", strings.Repeat("deep_", 40) + "token",
	}
	plain := []string{
		"", "id", "a", "tok", "name", "max_tokens", "token_count", "next_page_token", "pageToken", "nextSyncToken",
		"progressToken", "compass", "PWD", "OLDPWD", "bypass", "monkey", "primary_key", "secretary", "passwordless_login",
		"idempotency_key",
	}

	for _, name := range secret {
		if !telemetry.SecretName(name) {
			t.Errorf("SecretName(%q) = false, want true", name)
		}
	}
	for _, name := range plain {
		if telemetry.SecretName(name) {
			t.Errorf("SecretName(%q) = true, want false", name)
		}
	}
}

func BenchmarkSecretName(b *testing.B) {
	for b.Loop() {
		telemetry.SecretName("provider_id")
	}
}
