package request

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Change runs a change that records its own event, and answers 204.
func (c *Call) Change(change func(ctx context.Context, tx pgx.Tx) error) error {
	if err := c.InConfigurationTx(change); err != nil {
		return err
	}
	c.Wake() // actions that waited may be due now
	return c.NoContent()
}

// Configure runs a change of configuration, records its event in the same
// transaction, and answers 204.
func (c *Call) Configure(subject string, change func(ctx context.Context, tx pgx.Tx) error) error {
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := change(ctx, tx); err != nil {
			return err
		}
		return c.RecordChange(ctx, tx, subject)
	})
	if err != nil {
		return err
	}
	return c.NoContent()
}

// InConfigurationTx is InTx for a change of configuration, of which the tenant
// has one at a time. A change that the caller may not make is rolled back: the
// configurations before and after it are compared, so that no handler has to
// know what loosens what. The error is then fault.Denied. Both times all of it is
// read: a handler that said which parts it changes would have to be believed.
func (c *Call) InConfigurationTx(fn func(ctx context.Context, tx pgx.Tx) error) error {
	if pattern := c.R.PathValue("tool"); pattern != "" {
		if err := c.CheckTools(pattern); err != nil {
			return err
		}
	}
	return c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := c.LockConfiguration(ctx, tx); err != nil {
			return err
		}
		if access.ChangesFreely(c.By) {
			return fn(ctx, tx)
		}
		before, err := access.ReadConfiguration(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		after, err := access.ReadConfiguration(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		return access.AdmitChanges(c.By, access.Compare(before, after))
	})
}

// CheckTools returns nil if the caller's token is for all tools of a pattern, also
// where what is sent changes nothing. The error is fault.Denied, or fault.Invalid
// for a pattern that cannot be read.
func (c *Call) CheckTools(pattern string) error {
	if c.By.Tools == nil {
		return nil
	}
	key, err := policy.ParsePattern(pattern)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "not a pattern of tools, such as source:tool, source:*, *:tool or *")
	}
	return access.AdmitChanges(c.By, []access.Change{{What: "the setting for " + pattern, Tools: key}})
}

// RecordChange records the event of a change of configuration.
func (c *Call) RecordChange(ctx context.Context, tx pgx.Tx, subject string) error {
	return audit.Write(ctx, tx, audit.Event{
		Tenant: c.By.Tenant, Kind: audit.Configured, Actor: c.By.Actor(), Items: []audit.Item{{Subject: subject, Note: c.Note, Detail: c.Detail}},
	})
}

// NilIfZero returns nil for a value that was not set, or was reset, and the
// value otherwise.
func NilIfZero[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
