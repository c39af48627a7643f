package intake_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// TestOnlyPendingActionsHaveAnApprovalRow, each by the rules for its own tool and
// risk, in one batch with envelopes that run or are denied.
func TestOnlyPendingActionsHaveAnApprovalRow(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.mode("first:send", envelope.ModeRequireApproval)
	d.mode("first:danger", envelope.ModeDeny)
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutReview(ctx, tx, d.tenant, settings.ReviewRule{
			Pattern: "first:send", Risk: envelope.RiskHigh, Approvals: 2, Wait: new(envelope.Duration(2 * time.Hour)), Warn: new(envelope.Duration(0)), Escalate: new(envelope.Duration(time.Hour)),
		}, "ada")
	})
	asked, risky := call("note", `{}`), call("send", `{"text":"a"}`)
	asked.Approval, risky.Risk = envelope.ApprovalRequired, envelope.RiskHigh

	answers := d.accept(call("note", `{}`), asked, call("danger", `{}`), call("send", `{"text":"a"}`), risky)

	for i, want := range []struct {
		rows, needed, asked int
		wait                time.Duration
		warns, escalates    int
	}{{}, {1, 1, 1, time.Hour, 1, 0}, {}, {1, 1, 0, time.Hour, 1, 0}, {1, 2, 0, 2 * time.Hour, 0, 1}} {
		id := answers[i].Action.String()
		got := want
		got.rows = d.count("SELECT count(1) FROM approvals WHERE action_id = $1", id)
		got.needed = d.count("SELECT coalesce(sum(needed), 0) FROM approvals WHERE action_id = $1", id)
		got.asked = d.count("SELECT count(1) FROM approvals WHERE action_id = $1 AND asked", id)
		got.warns = d.count("SELECT count(1) FROM approvals p JOIN actions a USING (tenant_id, action_id) WHERE action_id = $1 AND p.warn_at = a.approval_expires_at - interval '12 minutes'", id)
		got.escalates = d.count("SELECT count(1) FROM approvals p JOIN actions a USING (tenant_id, action_id) WHERE action_id = $1 AND p.escalate_at = a.created_at + interval '1 hour'", id)
		got.wait = time.Duration(d.count("SELECT coalesce(extract(epoch FROM a.approval_expires_at - a.created_at), 0)::integer FROM actions a WHERE action_id = $1", id)) * time.Second
		if got != want {
			t.Errorf("envelope %d has %+v, want %+v", i, got, want)
		}
	}
}
