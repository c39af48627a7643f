package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

func tenantOf(ctx context.Context, tx pgx.Tx) (envelope.TenantID, error) {
	id, err := dbsqlc.New().TriageTenant(ctx, tx)
	return envelope.TenantID(id), err
}

// claim returns the ids of accounts that holder now holds. It first creates
// missing schedules.
func (a *Accounts) claim(ctx context.Context, tx pgx.Tx, holder uuid.UUID, most int, all bool, except []uuid.UUID) ([]uuid.UUID, error) {
	if err := dbsqlc.New().TriageScheduleFill(ctx, tx, a.Tenant); err != nil {
		return nil, err
	}
	return dbsqlc.New().TriageClaim(ctx, tx, &dbsqlc.TriageClaimParams{
		TenantID: a.Tenant, Holder: &holder, LeaseSeconds: a.cfg.Length.Seconds(), Most: int64(most), AllAccounts: all, Besides: append([]uuid.UUID{}, except...),
	})
}

func (a *Accounts) due(ctx context.Context, tx pgx.Tx) (int64, error) {
	if err := dbsqlc.New().TriageScheduleFill(ctx, tx, a.Tenant); err != nil {
		return 0, err
	}
	return dbsqlc.New().TriageDue(ctx, tx, a.Tenant)
}

// States returns how many accounts are read, failing or late.
func (a *Accounts) States(ctx context.Context, tx pgx.Tx) (measure.States, error) {
	row, err := dbsqlc.New().TriageAccountStates(ctx, tx, a.Tenant)
	if err != nil {
		return measure.States{}, err
	}
	return measure.States{OK: row.Ok, Failing: row.Failing, Late: row.Late}, nil
}

// require fails with ErrLost unless the lease is held, and with ErrPaused if the
// account is paused. It prevents another claim until the transaction ends.
func (l *Lease) require(ctx context.Context, tx pgx.Tx) error {
	pause, err := dbsqlc.New().TriageHold(ctx, tx, &dbsqlc.TriageHoldParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder, LeaseSeconds: l.accounts.cfg.Length.Seconds(), Quota: l.quotaState(),
	})
	if err := postgres.Found(err, ErrLost); err != nil {
		return err
	}
	if pause == paused {
		return ErrPaused
	}
	l.Travelling = pause == travelling
	return nil
}

// The pauses of an account, as triage_pause returns them.
const (
	paused     = "paused"
	travelling = "travelling"
)

// renewal is the state of an account at a renewal.
type renewal = dbsqlc.TriageRenewRow

func (l *Lease) renew(ctx context.Context, tx pgx.Tx) (renewal, error) {
	return dbsqlc.New().TriageRenew(ctx, tx, &dbsqlc.TriageRenewParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder, LeaseSeconds: l.accounts.cfg.Length.Seconds(),
	})
}

func (l *Lease) release(ctx context.Context, tx pgx.Tx, pause time.Duration) error {
	return dbsqlc.New().TriageRelease(ctx, tx, &dbsqlc.TriageReleaseParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder, PauseSeconds: pause.Seconds(),
	})
}

// Begin records that a cycle begins. It restores the stored quota state.
func (l *Lease) Begin(ctx context.Context, tx pgx.Tx) error {
	row, err := dbsqlc.New().TriageScheduleStart(ctx, tx, &dbsqlc.TriageScheduleStartParams{TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder})
	if err := postgres.Found(err, ErrLost); err != nil {
		return err
	}
	var stored quota.State
	if err := json.Unmarshal(row.Quota, &stored); err != nil {
		return fmt.Errorf("quota of the account: %w", err)
	}
	l.quota.Restore(stored)
	l.failures = int(row.Failures)
	return nil
}

// Visited records that all folders were checked.
func (l *Lease) Visited(ctx context.Context, tx pgx.Tx) error {
	return dbsqlc.New().TriageScheduleRead(ctx, tx, &dbsqlc.TriageScheduleReadParams{TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder})
}

// End records the result of a cycle and when the next is due.
func (l *Lease) End(ctx context.Context, tx pgx.Tx, err error, pause time.Duration) error {
	return dbsqlc.New().TriageScheduleEnd(ctx, tx, &dbsqlc.TriageScheduleEndParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Holder: &l.Holder, Error: measure.Problem(err), PauseSeconds: pause.Seconds(), Quota: l.quotaState(),
	})
}

// quotaState returns the state of the quota as JSON. Marshal cannot fail for
// times and numbers.
func (l *Lease) quotaState() []byte {
	raw, _ := json.Marshal(l.quota.State())
	return raw
}
