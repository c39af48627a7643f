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

// Export returns what is set for a tenant, every section of it. Apply of it
// changes nothing.
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

// Apply makes a tenant's settings what the document says, all of it or
// nothing, and returns what changed in order of section and name. With dry it
// returns what would change, and changes nothing. The bucket named default
// stays where the document leaves it out, without limits.
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

// PutBucket makes a bucket or sets its limits anew. A retired bucket is back in
// use. The limits hold at the next claim; what is used of the old ones counts on
// where it can.
func PutBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, b Bucket, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.buckets.Set(&d.Changes, b) })
}

// RetireBucket closes a bucket to new actions. Those in it go out as its limits
// allow. The bucket named default cannot be retired: fault.Conflict.
func RetireBucket(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.retire(name) })
}

// PutQuietHours stores the quiet hours of a scope and subject, instead of
// those that were there.
func PutQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, h QuietHours, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.quiet.Set(&d.Changes, h) })
}

// DeleteQuietHours removes the quiet hours of a scope and subject; if there
// are none, that is fault.NotFound.
func DeleteQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, scope QuietScope, subject string, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error {
		return d.quiet.Delete(&d.Changes, d.settings.quietKey(QuietHours{Scope: scope, Subject: subject}),
			fault.New(fault.NotFound, "no quiet hours are set there; list them to see which are"))
	})
}

// PutEmployee stores an employee's trust and scopes. It holds for actions that
// wait already.
func PutEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, e Employee, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.employees.Set(&d.Changes, e) })
}

// DeleteEmployee removes an employee's entry, so that the default one holds;
// if there is none, that is fault.NotFound.
func DeleteEmployee(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.EmployeeID, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error {
		return d.employees.Delete(&d.Changes, EmployeeText(id), fault.New(fault.NotFound, "nothing is set for the employee %s", EmployeeText(id)))
	})
}

// PutToolRule stores what an operator says about a tool, instead of what was
// said; an empty rule leaves all to the defaults again. It holds for actions
// that wait already, except for the number of attempts.
func PutToolRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ToolRule, by envelope.Actor) error {
	return change(ctx, tx, tenant, by, func(d *editor) error { return d.tools.Set(&d.Changes, r) })
}
