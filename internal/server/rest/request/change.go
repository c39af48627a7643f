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

// InConfigurationTx is InTx for a change of configuration, of which a tenant has
// one at a time. It rolls back a change that the caller may not make, with
// fault.Denied: it compares the configurations before and after the change, so
// that no handler has rules about loosening. It reads all of both: a handler that
// declared the changed parts would have to be trusted.
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

// CheckTools returns nil if the caller's token covers all tools of a pattern, even
// if the request changes nothing. The error is fault.Denied, or fault.Invalid for
// an invalid pattern.
func (c *Call) CheckTools(pattern string) error {
	if c.By.Tools == nil {
		return nil
	}
	key, err := policy.ParsePattern(pattern)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "must be a pattern of tools, such as source:tool, source:*, *:tool or *")
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
