package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// List returns a tenant's accounts, or those of the names, sorted by name. Like
// Get, it is for api and triage.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, names ...string) ([]Account, error) {
	rows, err := dbsqlc.New().TriageAccountList(ctx, tx, &dbsqlc.TriageAccountListParams{TenantID: tenant, Names: names})
	return postgres.TryMap(rows, err, func(r dbsqlc.TriageAccountListRow) (Account, error) {
		a := Account{
			Tenant: tenant, ID: r.AccountID, Name: r.Name, Kind: Kind(r.Kind), SecretFrom: r.SecretFrom, Secret: r.Secret, Enabled: r.Enabled,
			Every: time.Duration(r.EverySeconds) * time.Second, BackfillDays: int(r.BackfillDays), Operator: r.OperatorID, Version: r.Version,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		}
		for _, column := range []struct {
			raw  []byte
			into any
		}{{r.Connection, &a.Connection}, {r.Settings, &a.Settings}, {r.Proposals, &a.Proposals}, {r.Texts, &a.Texts}} {
			if err := json.Unmarshal(column.raw, column.into); err != nil {
				return a, fmt.Errorf("account %s: %w", r.Name, err)
			}
		}
		return a, nil
	})
}

// Get returns the account of a name. For an unknown one the error is
// fault.NotFound.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) (Account, error) {
	all, err := List(ctx, tx, tenant, name)
	switch {
	case err != nil:
		return Account{}, err
	case len(all) == 0:
		return Account{}, errNone(name)
	}
	return all[0], nil
}

func errNone(name string) error { return fault.New(fault.NotFound, "no triage account %s", name) }

// ReviewWait is how long proposals of triage wait for a person, unless a review
// rule of their source sets it. It allows for owners who check their mail only
// every few days.
const ReviewWait = 7 * 24 * time.Hour

// Put checks and stores an account. An existing account of the same name must
// have the same id and kind. If it names a source for its proposals, Put gives
// the source a review rule that waits ReviewWait, unless there is one with a
// wait. Like Delete, it is for api only.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, a Account) error {
	if err := a.Check(); err != nil {
		return err
	}
	params := &dbsqlc.TriageAccountPutParams{
		TenantID: tenant, AccountID: a.ID, Name: a.Name, Kind: string(a.Kind), SecretFrom: a.SecretFrom, Secret: a.Secret,
		Enabled: a.Enabled, EverySeconds: int32(a.Every / time.Second), BackfillDays: int32(a.BackfillDays), OperatorID: postgres.OrNull(a.Operator),
	}
	for _, column := range []struct {
		from any
		into *[]byte
	}{{a.Connection, &params.Connection}, {a.Settings, &params.Settings}, {a.Proposals, &params.Proposals}, {a.Texts, &params.Texts}} {
		raw, err := json.Marshal(column.from)
		if err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
		*column.into = raw
	}
	stored, err := dbsqlc.New().TriageAccountPut(ctx, tx, params)
	if err = violations.Fault(err); errors.Is(err, fault.NotFound) {
		return check.Invalid("/operator_id", "operator", "no such person; countersign operator list shows the ids")
	}
	if err != nil {
		return err
	}
	if stored.AccountID != a.ID || stored.Kind != string(a.Kind) {
		return fault.New(fault.Conflict, "account %s already exists with the kind %s; delete it first, or choose another name", a.Name, stored.Kind)
	}
	if !sourceForm.MatchString(a.Proposals.Source) {
		return nil // no source has this name
	}
	return settings.FillReviewWait(ctx, tx, tenant, a.Proposals.Source+":*", ReviewWait, "triage")
}

// violations are the faults for constraints that an account can violate.
var violations = postgres.Violations{
	"triage_accounts_operator_id_fkey": fault.New(fault.NotFound, "no such person"),
}

// Delete deletes an account with all data of its mail. For an unknown one the
// error is fault.NotFound.
func Delete(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) error {
	n, err := dbsqlc.New().TriageAccountDelete(ctx, tx, &dbsqlc.TriageAccountDeleteParams{TenantID: tenant, Name: name})
	return postgres.Affected(n, err, errNone(name))
}

// PutRenewed replaces the encrypted secret of an account, unless a person has replaced
// it meanwhile. It is for triage only.
func PutRenewed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id uuid.UUID, old, renewed []byte) (bool, error) {
	n, err := dbsqlc.New().TriageAccountRenewed(ctx, tx, &dbsqlc.TriageAccountRenewedParams{TenantID: tenant, AccountID: id, Old: old, Secret: renewed})
	return n == 1, err
}
