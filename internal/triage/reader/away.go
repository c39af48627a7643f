package reader

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// loadAbsence loads the answers in the owner's absence so far.
func (c *chunk) loadAbsence(ctx context.Context, tx pgx.Tx) error {
	c.absence = plan.Absence{}
	a := c.lease.Account.Proposals.Away
	if !a.At(time.Now()) {
		return nil
	}
	rows, err := dbsqlc.New().TriageAbsence(ctx, tx, &dbsqlc.TriageAbsenceParams{TenantID: c.lease.Tenant, AccountID: c.lease.Account.ID, Since: a.Since})
	for _, r := range rows {
		c.absence.Answered(r.ExternalID, r.Deadline)
	}
	return err
}

// away adds the answer in the owner's absence, or the reason for none, to the
// proposals about a message that arrived in it.
func (c *chunk) away(f decide.Facts, d decide.Decision, on plan.Target, received time.Time, proposals []plan.Proposal, skips []plan.Skip) ([]plan.Proposal, []plan.Skip) {
	a, now := c.lease.Account.Proposals.Away, time.Now()
	if !a.At(now) || !a.At(received) {
		return proposals, skips
	}
	refused, confirm := decide.Absent(f, d, a.Cohorts)
	if refused != "" {
		return proposals, append(skips, plan.Skip{Action: decide.Away, Because: refused})
	}
	p, err := plan.Absent(on, c.lease.Account.Proposals, c.lease.Account.Settings.Addresses, &c.absence, confirm, now)
	if err != nil {
		return proposals, append(skips, plan.Skip{Action: decide.Away, Because: err.Error()})
	}
	return append(proposals, p), skips
}
