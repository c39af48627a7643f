package limits

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// desk changes the settings of one tenant in one transaction, and remembers
// what changed. A dry desk writes nothing, and otherwise does the same: what
// it says would change is what a wet one changes.
type editor struct {
	tx      pgx.Tx
	tenant  envelope.TenantID
	dry     bool
	changes []Change

	// What is set, as the changes so far have left it.
	settings  Tenant
	buckets   map[string]storedBucket
	quiet     map[quietKey]QuietHours
	employees map[envelope.EmployeeID]Employee
	tools     map[string]ToolRule
}

// storedBucket is a bucket as it is stored.
type storedBucket struct {
	Bucket
	retired bool
}

// openDesk is newDesk for changes: it waits for those of others.
func lockAndEdit(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*editor, error) {
	if err := dbsqlc.New().TenantLock(ctx, tx, uuid.UUID(tenant)); err != nil {
		return nil, err
	}
	return newEditor(ctx, tx, tenant)
}

// newDesk reads what is set for a tenant.
func newEditor(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*editor, error) {
	d := &editor{tx: tx, tenant: tenant, buckets: make(map[string]storedBucket), quiet: make(map[quietKey]QuietHours), tools: make(map[string]ToolRule)}
	var err error
	if d.settings, err = TenantOf(ctx, tx, tenant); err != nil {
		return nil, err
	}
	stored, err := storedBuckets(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	for _, b := range stored {
		d.buckets[b.Name] = b
	}
	quiet, err := QuietHoursList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	for _, h := range quiet {
		d.quiet[h.key()] = h
	}
	if d.employees, err = employeesByID(ctx, tx, tenant); err != nil {
		return nil, err
	}
	tools, err := everyTool(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	for _, r := range tools {
		d.tools[r.Key().String()] = r
	}
	return d, nil
}

// change makes one change of a tenant's settings, and writes the event that
// tells of it.
func change(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by string, do func(d *editor) error) error {
	d, err := lockAndEdit(ctx, tx, tenant)
	if err != nil {
		return err
	}
	if err := do(d); err != nil {
		return err
	}
	return d.close(ctx, by)
}

// close writes the event that tells of all that changed.
func (d *editor) close(ctx context.Context, by string) error {
	var items []audit.Item
	for _, c := range d.changes {
		if c.Kind != Unchanged {
			items = append(items, c.item())
		}
	}
	if d.dry || len(items) == 0 {
		return nil
	}
	return note(ctx, d.tx, d.tenant, by, items...)
}

// record notes a change, and says whether it is to be written.
func (d *editor) record(section, name string, was, is any) (write bool, err error) {
	c, err := ChangeOf(section, name, was, is)
	if err != nil {
		return false, err
	}
	d.changes = append(d.changes, c)
	return c.Kind != Unchanged && !d.dry, nil
}

func (d *editor) id() uuid.UUID { return uuid.UUID(d.tenant) }

// zone checks that the database, too, knows a time zone: it reckons with it.
func (d *editor) zone(ctx context.Context, pointer, name string) error {
	if name == "" {
		return nil
	}
	// sqlc does not know the view, so that it is written out here.
	const query = "SELECT EXISTS (SELECT FROM pg_timezone_names z WHERE z.name = $1)"
	var known bool
	err := d.tx.QueryRow(ctx, query, name).Scan(&known)
	if err == nil && !known {
		return check.Invalid(pointer, envelope.RuleFormat, "must be a time zone that the database's server knows too; this one it does not")
	}
	return err
}

// putTenant stores the tenant's own settings.
func (d *editor) putTenant(ctx context.Context, t Tenant) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := d.zone(ctx, "/timezone", t.Timezone); err != nil {
		return err
	}
	t = t.settled()
	write, err := d.record(sectionSettings, "", d.settings, t)
	d.settings = t
	if err != nil || !write {
		return err
	}
	n, err := dbsqlc.New().TenantSettingsPut(ctx, d.tx, &dbsqlc.TenantSettingsPutParams{
		TenantID: d.id(), Timezone: t.Timezone, PhoneRegion: t.PhoneRegion, PlusAddressing: t.PlusAddressing,
		SessionPendingMax: int32(*t.SessionPending), SessionMinuteMax: int32(*t.SessionMinute),
	})
	err = violations.Fault(err)
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no tenant %s", d.tenant)
	}
	return err
}

// putBucket stores a bucket, and takes it back into use if it was retired.
func (d *editor) putBucket(ctx context.Context, b Bucket) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if b.Calendar != nil {
		if err := d.zone(ctx, "/calendar/timezone", b.Calendar.Timezone); err != nil {
			return err
		}
	}
	b = b.settled()
	var was any
	if old, ok := d.buckets[b.Name]; ok && !old.retired {
		was = old.Bucket
	}
	write, err := d.record(sectionBuckets, b.Name, was, b)
	d.buckets[b.Name] = storedBucket{Bucket: b}
	if err != nil || !write {
		return err
	}
	return violations.Fault(dbsqlc.New().BucketPut(ctx, d.tx, bucketParams(d.tenant, d.settings, b)))
}

// retireBucket lets nothing new into a bucket.
func (d *editor) retireBucket(ctx context.Context, name string) error {
	old, ok := d.buckets[name]
	if !ok || old.retired {
		return fault.New(fault.NotFound, "no bucket %s", shortened(name))
	}
	if name == DefaultBucket {
		return fault.New(fault.Conflict, "the bucket default holds what names no other, and cannot be retired")
	}
	write, err := d.record(sectionBuckets, name, old.Bucket, nil)
	old.retired = true
	d.buckets[name] = old
	if err != nil || !write {
		return err
	}
	_, err = dbsqlc.New().BucketRetire(ctx, d.tx, &dbsqlc.BucketRetireParams{TenantID: d.id(), Name: name})
	return err
}

// bucket checks that a bucket is there, retired or not.
func (d *editor) bucket(pointer, name string) error {
	if _, ok := d.buckets[name]; ok {
		return nil
	}
	return check.Invalid(pointer, check.RuleUnknown, "must be the name of a bucket: %s", strings.Join(d.bucketNames(), ", "))
}

// bucketNames is the names of buckets that take new envelopes, the first few
// of many.
func (d *editor) bucketNames() []string {
	const shown = 50
	var names []string
	for name, b := range d.buckets {
		if !b.retired {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	return names
}

// putQuiet stores quiet hours.
func (d *editor) putQuiet(ctx context.Context, h QuietHours, by string) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if h.Scope == QuietBucket {
		if err := d.bucket("/subject", h.Subject); err != nil {
			return err
		}
	}
	h = h.settled(d.settings)
	var was any
	if old, ok := d.quiet[h.key()]; ok {
		was = old
	}
	write, err := d.record(sectionQuiet, h.label(), was, h)
	d.quiet[h.key()] = h
	if err != nil || !write {
		return err
	}
	windows, err := json.Marshal(h.Windows)
	if err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().QuietHoursUpsert(ctx, d.tx, &dbsqlc.QuietHoursUpsertParams{
		TenantID: d.id(), Scope: string(h.Scope), Subject: h.Subject, Timezone: h.Timezone,
		Windows: windows, SpreadSeconds: h.Spread.Seconds(), UpdatedBy: by,
	}))
}

// dropQuiet removes quiet hours.
func (d *editor) dropQuiet(ctx context.Context, scope QuietScope, subject string) error {
	h := QuietHours{Scope: scope, Subject: subject}.settled(d.settings)
	old, ok := d.quiet[h.key()]
	if !ok {
		return fault.New(fault.NotFound, "no quiet hours are set there; list them to see which are")
	}
	write, err := d.record(sectionQuiet, old.label(), old, nil)
	delete(d.quiet, h.key())
	if err != nil || !write {
		return err
	}
	_, err = dbsqlc.New().QuietHoursDelete(ctx, d.tx, &dbsqlc.QuietHoursDeleteParams{TenantID: d.id(), Scope: string(old.Scope), Subject: old.Subject})
	return err
}

// putEmployee stores what an employee may do.
func (d *editor) putEmployee(ctx context.Context, e Employee, by string) error {
	if err := e.Validate(); err != nil {
		return err
	}
	e = e.settled()
	var was any
	if old, ok := d.employees[e.ID]; ok {
		was = old
	}
	write, err := d.record(sectionEmployees, EmployeeText(e.ID), was, e)
	d.employees[e.ID] = e
	if err != nil || !write {
		return err
	}
	return violations.Fault(dbsqlc.New().EmployeeUpsert(ctx, d.tx, &dbsqlc.EmployeeUpsertParams{
		TenantID: d.id(), EmployeeID: uuid.UUID(e.ID), Name: e.Name, Trust: string(e.Trust), Scopes: e.Scopes, UpdatedBy: by,
	}))
}

// dropEmployee removes an employee's entry; the default one holds from then.
func (d *editor) dropEmployee(ctx context.Context, id envelope.EmployeeID) error {
	old, ok := d.employees[id]
	if !ok {
		return fault.New(fault.NotFound, "nothing is set for the employee %s", EmployeeText(id))
	}
	write, err := d.record(sectionEmployees, EmployeeText(id), old, nil)
	delete(d.employees, id)
	if err != nil || !write {
		return err
	}
	_, err = dbsqlc.New().EmployeeDelete(ctx, d.tx, &dbsqlc.EmployeeDeleteParams{TenantID: d.id(), EmployeeID: uuid.UUID(id)})
	return err
}

// putRule stores what an operator says about a tool.
func (d *editor) putRule(ctx context.Context, r ToolRule) error {
	if err := r.Validate(); err != nil {
		return err
	}
	key := r.Key().String()
	old, ok := d.tools[key]
	if !ok {
		return check.Invalid("/name", check.RuleUnknown, "must be a tool that the source has; list the tools to see them")
	}
	r = r.settled()
	var was, is any
	if !old.empty() {
		was = old
	}
	if !r.empty() {
		is = r
	}
	if was == nil && is == nil {
		return nil
	}
	write, err := d.record(sectionTools, key, was, is)
	d.tools[key] = r
	if err != nil || !write {
		return err
	}
	_, err = dbsqlc.New().ToolRulePut(ctx, d.tx, ruleParams(d.tenant, r))
	err = violations.Fault(err)
	return err
}

// shortened is a text that is short enough to be repeated.
func shortened(text string) string {
	const most = 100
	if len(text) > most {
		return "of that name"
	}
	return text
}
