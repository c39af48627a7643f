package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// addSource gives a tenant another source with the same tools.
func (y *fixture) addSource(tenant envelope.TenantID, id string) {
	y.t.Helper()
	err := postgres.InTx(y.t.Context(), y.db, postgres.Admin(), func(tx pgx.Tx) error {
		ctx := y.t.Context()
		if err := catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: id, Kind: catalog.KindMCP, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, tenant, id, tools("as listed")); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "test")
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// proposeFor proposes a call for a tenant.
func (y *fixture) proposeFor(tenant envelope.TenantID, source, tool string) envelope.ActionID {
	y.t.Helper()
	return y.proposeAs(intake.Submitter{Tenant: tenant, Name: "agent"}, source, tool)
}

func (y *fixture) proposeAs(by intake.Submitter, source, tool string) envelope.ActionID {
	y.t.Helper()
	answers, err := y.in.Accept(y.t.Context(), by, []*envelope.Proposal{
		{Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: source}, Args: json.RawMessage(`{}`)},
	})
	if err != nil || answers[0].Err != nil {
		y.t.Fatal(err, answers)
	}
	return answers[0].Action
}

func TestSlowToolLeavesTheOthersTheirShare(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	const slots, backlog = 4, 30
	other := envelope.TenantID(uuid.Must(uuid.NewV7()))
	y.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'other')", other.String())
	y.addSource(y.tenant, "beside")
	y.addSource(other, "fake")
	gate, entered := make(chan struct{}), make(chan struct{}, backlog)
	y.src.On(toolOnce, func(context.Context, source.Call) sourcetest.Step {
		entered <- struct{}{}
		<-gate
		return sourcetest.Done("")
	})
	y.submit(toolOnce, backlog)
	cfg := config("w1")
	cfg.Concurrency = slots
	p := y.pipeline(y.db, y.src, cfg)
	stop := y.run(p)
	for range slots {
		<-entered // a tenant that is alone has all slots
	}

	// All are behind the backlog: two in its bucket, the other in its worker. The
	// awaited one is of the slow tool's source.
	y.proposeFor(y.tenant, "beside", toolRead)
	y.proposeAs(intake.Submitter{Tenant: y.tenant, Name: "agent", Awaited: true}, "fake", toolRead)
	y.proposeFor(other, "fake", toolRead)
	p.Poll()
	y.until("SELECT count(1) = 3 FROM tool_executions WHERE status = 'sent'")

	if n := len(entered); n > 0 {
		t.Errorf("%d more calls of the slow tool were made in the slots of the others", n)
	}
	close(gate)
	y.empty()
	stop()
	if n := one[int](y, "SELECT count(1) FROM tool_executions WHERE status = 'sent'"); n != backlog+3 {
		t.Errorf("%d actions were sent, want all %d", n, backlog+3)
	}
}
