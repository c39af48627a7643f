package worker_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

// TestCallsWaitForALostLogin holds the calls of a source that lost its login, and sends
// them when somebody has changed the login; or sends them to fail, by the setting.
func TestCallsWaitForALostLogin(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by, lost_at, lost_reason) VALUES ($1, 'fake', 'https://as.example', '', 'ada', now(), 'r')", y.tenant.String())
	ids := y.submit(toolOnce, 3)
	p := y.pipeline(y.db, y.src, config("w1"))
	y.run(p)

	y.until("SELECT count(1) = 3 FROM outbox WHERE waits_for = 'login_lost' AND lease_until IS NULL")

	if n := len(y.src.Calls()); n != 0 {
		t.Errorf("%d calls without a login", n)
	}
	if v := y.view(ids[0]); v.WaitsFor != preflight.CodeLoginLost || len(y.history(ids[0])) != 0 {
		t.Errorf("it waits for %q after the attempts %q", v.WaitsFor, y.history(ids[0]))
	}
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		_, err := login.Remove(ctx, tx, y.tenant, "fake", true)
		return err
	})
	if err := background.Sweep(t.Context(), y.db, p.Poll); err != nil {
		t.Fatal(err)
	}
	y.empty()
	if n := len(y.src.Calls()); n != 3 {
		t.Errorf("%d calls after the login, want 3", n)
	}

	y.exec("INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by, needed_scopes, needed_tools) VALUES ($1, 'fake', 'https://as.example', '', 'ada', '{send}', '{act.once}')", y.tenant.String())
	y.submit(toolOnce, 1)
	p.Poll()
	y.until("SELECT count(1) = 1 FROM outbox WHERE waits_for = 'login_lost' AND lease_until IS NULL")
	y.exec("UPDATE source_logins SET needed_tools = '{other}'")
	y.exec("UPDATE outbox SET next_attempt_at = now()")
	p.Poll()
	y.empty()
	if n := len(y.src.Calls()); n != 4 {
		t.Errorf("%d calls of a tool that needs no other scope, want 4", n)
	}
	y.exec("DELETE FROM source_logins")

	y.exec("UPDATE sources SET on_lost_login = 'fail'")
	y.exec("INSERT INTO source_logins (tenant_id, source_id, issuer, secret, login_by, lost_at, lost_reason) VALUES ($1, 'fake', 'https://as.example', '', 'ada', now(), 'r')", y.tenant.String())
	y.submit(toolOnce, 1)
	p.Poll()
	y.empty()
	if n := len(y.src.Calls()); n != 5 {
		t.Error("a call that may fail waits")
	}
}
