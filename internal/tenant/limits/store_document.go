package limits

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Export returns what is set for a tenant, every section of it. Apply of it
// changes nothing.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Document, error) {
	d, err := newEditor(ctx, tx, tenant)
	if err != nil {
		return Document{}, err
	}
	buckets := []Bucket{}
	for _, b := range d.buckets {
		if !b.retired {
			buckets = append(buckets, b.Bucket)
		}
	}
	sortBuckets(buckets)
	quiet := slices.AppendSeq([]QuietHours{}, maps.Values(d.quiet))
	sortQuiet(quiet)
	employees := slices.AppendSeq([]Employee{}, maps.Values(d.employees))
	sortEmployees(employees)
	tools := []ToolRule{}
	for _, r := range d.tools {
		if !r.empty() {
			tools = append(tools, r)
		}
	}
	sortRules(tools)
	return Document{&d.settings, &buckets, &quiet, &employees, &tools}, nil
}

// Apply makes a tenant's settings what the document says, all of it or
// nothing, and returns what changed in order of section and name. With dry it
// says what would change, and changes nothing. The bucket named default stays
// where the document leaves it out, without limits.
func Apply(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, doc Document, by string, dry bool) ([]Change, error) {
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	d, err := lockAndEdit(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	d.dry = dry
	for _, section := range []func(context.Context, Document, string) error{d.applySettings, d.applyBuckets, d.applyQuiet, d.applyEmployees, d.applyTools} {
		if err := section(ctx, doc, by); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(d.changes, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(a.Name, b.Name)) })
	return d.changes, d.close(ctx, by)
}

func (d *editor) applySettings(ctx context.Context, doc Document, _ string) error {
	if doc.Settings == nil {
		return nil
	}
	return within("/settings", d.putTenant(ctx, *doc.Settings))
}

func (d *editor) applyBuckets(ctx context.Context, doc Document, _ string) error {
	if doc.Buckets == nil {
		return nil
	}
	wanted := map[string]bool{}
	for i, b := range *doc.Buckets {
		wanted[b.Name] = true
		if err := within(fmt.Sprintf("/buckets/%d", i), d.putBucket(ctx, b)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.buckets)) {
		if wanted[name] || d.buckets[name].retired {
			continue
		}
		if name == DefaultBucket {
			if err := d.putBucket(ctx, Bucket{Name: name}); err != nil {
				return err
			}
			continue
		}
		if err := d.retireBucket(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *editor) applyQuiet(ctx context.Context, doc Document, by string) error {
	if doc.QuietHours == nil {
		return nil
	}
	wanted := map[quietKey]bool{}
	for i, h := range *doc.QuietHours {
		wanted[h.settled(d.settings).key()] = true
		if err := within(fmt.Sprintf("/quiet_hours/%d", i), d.putQuiet(ctx, h, by)); err != nil {
			return err
		}
	}
	for key := range maps.Clone(d.quiet) {
		if wanted[key] {
			continue
		}
		if err := d.dropQuiet(ctx, key.scope, key.subject); err != nil {
			return err
		}
	}
	return nil
}

func (d *editor) applyEmployees(ctx context.Context, doc Document, by string) error {
	if doc.Employees == nil {
		return nil
	}
	wanted := map[envelope.EmployeeID]bool{}
	for i, e := range *doc.Employees {
		wanted[e.ID] = true
		if err := within(fmt.Sprintf("/employees/%d", i), d.putEmployee(ctx, e, by)); err != nil {
			return err
		}
	}
	for id := range maps.Clone(d.employees) {
		if wanted[id] {
			continue
		}
		if err := d.dropEmployee(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (d *editor) applyTools(ctx context.Context, doc Document, _ string) error {
	if doc.Tools == nil {
		return nil
	}
	wanted := map[string]bool{}
	for i, r := range *doc.Tools {
		wanted[r.Key().String()] = true
		if err := within(fmt.Sprintf("/tools/%d", i), d.putRule(ctx, r)); err != nil {
			return err
		}
	}
	for key, r := range maps.Clone(d.tools) {
		if wanted[key] {
			continue
		}
		if err := d.putRule(ctx, ToolRule{Source: r.Source, Name: r.Name}); err != nil {
			return err
		}
	}
	return nil
}

// within puts the pointers of an error below a place in the document.
func within(pointer string, err error) error {
	var p check.Problems
	if err := p.Below(pointer, err); err != nil {
		return err
	}
	return p.Err()
}
