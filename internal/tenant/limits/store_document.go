package limits

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/document"
)

// Export returns all settings of a tenant. Applying the result changes nothing.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Document, error) {
	settings, err := TenantOf(ctx, tx, tenant)
	if err != nil {
		return Document{}, err
	}
	d := Document{Settings: &settings, Buckets: []Bucket{}}
	stored, err := storedBuckets(ctx, tx, tenant)
	for _, b := range stored {
		if !b.retired {
			d.Buckets = append(d.Buckets, b.Bucket)
		}
	}
	if err == nil {
		d.QuietHours, err = QuietHoursList(ctx, tx, tenant)
	}
	if err == nil {
		d.Employees, err = Employees(ctx, tx, tenant)
	}
	if err == nil {
		d.Tools, err = ToolRules(ctx, tx, tenant)
	}
	return d, err
}

// Apply replaces a tenant's settings by a document, atomically, and returns the
// changes ordered by section and name. With dry it changes nothing and returns
// the changes that it would make. If the document omits the bucket named
// default, the bucket stays, without limits.
func Apply(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, doc Document, by envelope.Actor, dry bool) ([]document.Change, error) {
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	if doc.Buckets != nil && !slices.ContainsFunc(doc.Buckets, func(b Bucket) bool { return b.Name == DefaultBucket }) {
		doc.Buckets = append(slices.Clip(doc.Buckets), Bucket{Name: DefaultBucket})
	}
	d, err := edit(ctx, tx, tenant, by, dry, func(d *editor) error {
		if doc.Settings != nil {
			if err := document.Within("/settings", d.setTenant(ctx, *doc.Settings)); err != nil {
				return err
			}
		}
		if err := d.buckets.Apply(&d.Changes, doc.Buckets); err != nil {
			return err
		}
		if err := d.quiet.Apply(&d.Changes, doc.QuietHours); err != nil {
			return err
		}
		if err := d.employees.Apply(&d.Changes, doc.Employees); err != nil {
			return err
		}
		return d.tools.Apply(&d.Changes, doc.Tools)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.List, func(a, b document.Change) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Name, b.Name))
	})
	return d.List, nil
}

// PutTenant stores a tenant's own settings.
func PutTenant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, t Tenant, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.setTenant(ctx, t) })
}

// PutBucket inserts or updates a bucket. A retired bucket becomes active again.
// The limits apply from the next claim; usage of the old ones is carried over
// where possible.
func PutBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, b Bucket, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.buckets.Set(&d.Changes, b) })
}

// RetireBucket closes a bucket to new actions. Its actions are sent as its
// limits allow. Retiring the bucket named default is fault.Conflict.
func RetireBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.retire(name) })
}

// PutQuietHours replaces the quiet hours of a scope and subject.
func PutQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, h QuietHours, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.quiet.Set(&d.Changes, h) })
}

// DeleteQuietHours removes the quiet hours of a scope and subject. If there are
// none, the error is fault.NotFound.
func DeleteQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, scope QuietScope, subject string, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error {
		return d.quiet.Delete(&d.Changes, d.settings.quietKey(QuietHours{Scope: scope, Subject: subject}),
			fault.New(fault.NotFound, "no quiet hours are set there; list them to see which are"))
	})
}

// PutEmployee stores an employee's trust and scopes. They also apply to waiting
// actions.
func PutEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, e Employee, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.employees.Set(&d.Changes, e) })
}

// DeleteEmployee removes an employee's entry, so that the default one applies.
// If it does not exist, the error is fault.NotFound.
func DeleteEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.EmployeeID, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error {
		return d.employees.Delete(&d.Changes, EmployeeText(id), fault.New(fault.NotFound, "nothing is set for the employee %s", EmployeeText(id)))
	})
}

// PutToolRule replaces the rule of operators about a tool; an empty rule
// restores the defaults. It also applies to waiting actions, except for the
// number of attempts.
func PutToolRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ToolRule, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.tools.Set(&d.Changes, r) })
}
