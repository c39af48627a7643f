package limits

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/document"
)

// editor changes the settings of one tenant in one transaction, and collects the
// changes for the event. A dry editor writes nothing, but collects the same
// changes.
type editor struct {
	document.Changes
	tx     pgx.Tx
	tenant envelope.TenantID
	// by is the author of the changes.
	by envelope.Actor

	settings  Tenant
	buckets   document.Section[Bucket]
	quiet     document.Section[QuietHours]
	employees document.Section[Employee]
	tools     document.Section[ToolRule]
	// known are the keys of all tools.
	known map[string]bool
}

// edit runs do to change a tenant's settings, after concurrent changes have
// ended, and writes the event of the changes.
func edit(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by envelope.Actor, dry bool, do func(*editor) error) (*editor, error) {
	if err := dbsqlc.New().TenantLock(ctx, tx, tenant); err != nil {
		return nil, err
	}
	d := &editor{Changes: document.Changes{Dry: dry}, tx: tx, tenant: tenant, by: by}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if err := do(d); err != nil {
		return nil, err
	}
	items := d.Items("")
	if len(items) == 0 {
		return d, nil
	}
	return d, recordChange(ctx, tx, tenant, by, items...)
}

// change is edit for the exported functions that make one change.
func change(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by envelope.Actor, do func(*editor) error) error {
	_, err := edit(ctx, tx, tenant, by, false, do)
	return err
}

// recordChange writes the event of changes.
func recordChange(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by envelope.Actor, items ...audit.Item) error {
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: items})
}

// load reads the tenant's settings.
func (d *editor) load(ctx context.Context) error {
	d.buckets = d.bucketSection(ctx)
	d.quiet = d.quietSection(ctx)
	d.employees = d.employeeSection(ctx)
	d.tools = d.toolSection(ctx)
	stored, err := Export(ctx, d.tx, d.tenant)
	if err != nil {
		return err
	}
	d.settings = *stored.Settings
	d.buckets.Store(stored.Buckets)
	d.quiet.Store(stored.QuietHours)
	d.employees.Store(stored.Employees)
	d.tools.Store(stored.Tools)
	return nil
}

// checkZone checks that the database also supports a valid time zone: it
// computes the periods of calendars.
func (d *editor) checkZone(ctx context.Context, pointer, name string) error {
	if name == "" {
		return nil
	}
	known, err := postgres.KnowsZone(ctx, d.tx, name)
	if err == nil && !known {
		return check.Invalid(pointer, envelope.RuleFormat, "must be a time zone that the database server supports")
	}
	return err
}

// setTenant stores the tenant's own settings.
func (d *editor) setTenant(ctx context.Context, t Tenant) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := d.checkZone(ctx, "/timezone", t.Timezone); err != nil {
		return err
	}
	was := d.settings
	d.settings = t.settled()
	return d.Record(sectionSettings, sectionSettings, "", was, d.settings, func() error { return putTenant(ctx, d.tx, d.tenant, d.settings) })
}

func (d *editor) bucketSection(ctx context.Context) document.Section[Bucket] {
	return document.Section[Bucket]{
		Name: sectionBuckets, Noun: nounBucket, Key: Bucket.key,
		Prepare: func(b Bucket) (Bucket, error) {
			if err := b.Validate(); err != nil || b.Calendar == nil {
				return b.settled(), err
			}
			return b.settled(), d.checkZone(ctx, "/calendar/timezone", b.Calendar.Timezone)
		},
		Put: func(b Bucket) error { return putBucket(ctx, d.tx, d.tenant, d.settings, b) },
		Remove: func(b Bucket) error {
			return dbsqlc.New().BucketRetire(ctx, d.tx, &dbsqlc.BucketRetireParams{TenantID: d.tenant, Name: b.Name})
		},
	}
}

// retire closes a bucket to new actions.
func (d *editor) retire(name string) error {
	if name == DefaultBucket {
		return fault.New(fault.Conflict, "the bucket default holds what names no other, and cannot be retired")
	}
	return d.buckets.Delete(&d.Changes, name, fault.New(fault.NotFound, "no bucket %s", shortened(name)))
}

// checkBucket checks that a bucket exists, retired or not.
func (d *editor) checkBucket(ctx context.Context, pointer, name string) error {
	if _, ok := d.buckets.Stored[name]; ok {
		return nil
	}
	all, err := storedBuckets(ctx, d.tx, d.tenant)
	if err != nil || slices.ContainsFunc(all, func(b storedBucket) bool { return b.Name == name }) {
		return err
	}
	const shown = 50 // the first few of many
	names := slices.Sorted(maps.Keys(d.buckets.Stored))
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	return check.Invalid(pointer, check.RuleUnknown, "must be the name of a bucket: %s", strings.Join(names, ", "))
}

func (d *editor) quietSection(ctx context.Context) document.Section[QuietHours] {
	return document.Section[QuietHours]{
		Name: sectionQuiet, Noun: nounQuiet, Key: func(h QuietHours) string { return d.settings.quietKey(h) },
		Prepare: func(h QuietHours) (QuietHours, error) {
			err := h.Validate()
			if err == nil && h.Scope == QuietBucket {
				err = d.checkBucket(ctx, "/subject", h.Subject)
			}
			return h.Stored(d.settings), err
		},
		Put: func(h QuietHours) error { return putQuietHours(ctx, d.tx, d.tenant, h, d.by) },
		Remove: func(h QuietHours) error {
			return dbsqlc.New().QuietHoursDelete(ctx, d.tx, &dbsqlc.QuietHoursDeleteParams{TenantID: d.tenant, Scope: string(h.Scope), Subject: h.Subject})
		},
	}
}

func (d *editor) employeeSection(ctx context.Context) document.Section[Employee] {
	return document.Section[Employee]{
		Name: sectionEmployees, Noun: nounEmployee, Key: Employee.key,
		Prepare: func(e Employee) (Employee, error) { return e.settled(), e.Validate() },
		Put: func(e Employee) error {
			return violations.Fault(dbsqlc.New().EmployeeUpsert(ctx, d.tx, &dbsqlc.EmployeeUpsertParams{
				TenantID: d.tenant, EmployeeID: e.ID, Name: e.Name, Trust: string(e.Trust), Scopes: e.Scopes, UpdatedBy: string(d.by),
			}))
		},
		Remove: func(e Employee) error {
			return dbsqlc.New().EmployeeDelete(ctx, d.tx, &dbsqlc.EmployeeDeleteParams{TenantID: d.tenant, EmployeeID: e.ID})
		},
	}
}

// toolSection returns the section of non-empty rules. Removing a rule stores an
// empty one, since the row belongs to the tool.
func (d *editor) toolSection(ctx context.Context) document.Section[ToolRule] {
	put := func(r ToolRule) error { return putToolRule(ctx, d.tx, d.tenant, r) }
	return document.Section[ToolRule]{
		Name: sectionTools, Noun: nounTool, Key: ToolRule.key,
		Prepare: func(r ToolRule) (ToolRule, error) {
			if err := r.Validate(); err != nil {
				return r, err
			}
			return r.settled(), d.checkTool(ctx, r)
		},
		Empty: ToolRule.empty,
		Put:   put, Remove: func(r ToolRule) error { return put(ToolRule{Source: r.Source, Name: r.Name, Scopes: []string{}}) },
	}
}

// checkTool checks that the tool of a rule exists.
func (d *editor) checkTool(ctx context.Context, r ToolRule) error {
	if d.known == nil {
		all, err := dbsqlc.New().ToolNames(ctx, d.tx, d.tenant)
		if err != nil {
			return err
		}
		d.known = make(map[string]bool, len(all))
		for _, t := range all {
			d.known[ToolRule{Source: t.SourceID, Name: t.Name}.key()] = true
		}
	}
	if d.known[r.key()] {
		return nil
	}
	return check.Invalid("/tool", check.RuleUnknown, "must be a tool that the source has; list the tools to see them")
}

// putTenant writes a tenant's own settings.
func putTenant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, t Tenant) error {
	n, err := dbsqlc.New().TenantSettingsPut(ctx, tx, &dbsqlc.TenantSettingsPutParams{
		TenantID: tenant, Timezone: t.Timezone, PhoneRegion: t.PhoneRegion, PlusAddressing: t.PlusAddressing,
		SessionPendingMax: int32(*t.SessionPending), SessionMinuteMax: int32(*t.SessionMinute),
	})
	return postgres.Affected(n, violations.Fault(err), fault.New(fault.NotFound, "no tenant %s", tenant))
}

// shortened returns a text that is short enough for a message.
func shortened(text string) string {
	const most = 100
	if len(text) > most {
		return "of that name"
	}
	return text
}
