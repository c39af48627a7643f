package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// Load reads and compiles the settings of a tenant. If there is no such tenant,
// the error is fault.NotFound.
func Load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Set, error) {
	q := dbsqlc.New()
	s := &Set{}
	var err error
	if s.tenant, s.doNotContact, err = tenantOf(ctx, tx, tenant); err != nil {
		return nil, err
	}
	buckets, err := q.BucketSettingsList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	s.buckets, s.names = make(map[string]int64, len(buckets)), make(map[int64]string, len(buckets))
	for _, b := range buckets {
		s.names[b.BucketID] = b.Name
		if b.RetiredAt == nil {
			s.buckets[b.Name] = b.BucketID
			s.bucketNames = append(s.bucketNames, b.Name)
		}
	}
	slices.Sort(s.bucketNames)
	employees, err := Employees(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	s.employees = make(map[envelope.EmployeeID]Employee, len(employees))
	for _, e := range employees {
		s.employees[e.ID] = e
	}
	if s.quiet, err = loadQuiet(ctx, tx, tenant, s.tenant.ContactOptions()); err != nil {
		return nil, err
	}
	active, err := q.PauseActiveList(ctx, tx, &tenant)
	if err != nil {
		return nil, err
	}
	s.pauses = make(map[pause.Target]wire.Pause, len(active))
	for _, r := range active {
		s.pauses[pause.Target{Scope: r.Scope, Subject: r.Subject}] = wire.Pause{
			ID: r.PauseID, Target: wire.Target{Scope: r.Scope, Subject: r.Subject}, Kill: r.Kill,
			Reason: r.Reason, By: envelope.Actor(r.PausedBy), At: r.PausedAt, KilledAt: r.KilledAt, Travelling: r.Travelling,
		}
	}
	return s, nil
}

// loadQuiet compiles a tenant's quiet hours; nil if it has none.
func loadQuiet(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, opts contact.Options) (*quietSet, error) {
	all, err := QuietHoursList(ctx, tx, tenant)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	set := &quietSet{
		employees: make(map[envelope.EmployeeID]*quiethours.Schedule), buckets: make(map[string]*quiethours.Schedule),
		recipients: make(map[contact.Contact]*quiethours.Schedule),
	}
	for _, h := range all {
		schedule, err := h.Compile()
		if err != nil {
			return nil, fmt.Errorf("quiet hours of %s: %w", h.Scope, err)
		}
		switch h.Scope {
		case QuietTenant:
			set.tenant = schedule
		case QuietEmployee:
			id, _ := uuid.Parse(h.Subject) // checked when it was stored
			set.employees[envelope.EmployeeID(id)] = schedule
		case QuietBucket:
			set.buckets[h.Subject] = schedule
		case QuietRecipient:
			c, err := parseRecipient(h.Subject, opts)
			if err != nil {
				return nil, fmt.Errorf("quiet hours of a recipient: %w", err)
			}
			set.recipients[c] = schedule
		}
	}
	return set, nil
}

// QuietHoursList returns all quiet hours of a tenant, ordered by scope and
// subject.
func QuietHoursList(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]QuietHours, error) {
	rows, err := dbsqlc.New().QuietHoursList(ctx, tx, tenant)
	all, err := postgres.TryMap(rows, err, func(r dbsqlc.QuietHoursListRow) (QuietHours, error) {
		h := QuietHours{Scope: QuietScope(r.Scope), Subject: r.Subject}
		h.Timezone, h.Spread = r.Timezone, new(durationOf(r.SpreadSeconds))
		if err := json.Unmarshal(r.Windows, &h.Windows); err != nil {
			return h, fmt.Errorf("quiet hours of %s: %w", r.Scope, err)
		}
		return h, nil
	})
	slices.SortFunc(all, func(a, b QuietHours) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Subject, b.Subject))
	})
	return all, err
}

// The extent of a preview of quiet hours.
const (
	previewDays = 14
	// maxWaiting is the maximum number of actions that a preview counts.
	maxWaiting = 10_000
)

// PreviewQuietHours returns the effect of quiet hours over two weeks. Without a
// scope, or for an employee or a recipient, it counts no actions.
func PreviewQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, h QuietHours, from time.Time) (wire.QuietPreview, error) {
	if h.Scope != "" {
		if err := h.Validate(); err != nil {
			return wire.QuietPreview{}, err
		}
	}
	schedule, err := h.Compile()
	if err != nil {
		return wire.QuietPreview{}, err
	}
	from = from.UTC().Truncate(time.Second)
	until := from.AddDate(0, 0, previewDays)
	preview := wire.QuietPreview{From: from, Until: until, Intervals: schedule.Intervals(from, until), ClockChanges: schedule.ClockChanges(from, until)}
	if h.Scope != QuietTenant && h.Scope != QuietBucket {
		return preview, nil
	}
	p := &dbsqlc.QuietHoursWaitingParams{TenantID: tenant, Bucket: h.Subject, Most: maxWaiting}
	for _, i := range preview.Intervals {
		p.Froms, p.Untils = append(p.Froms, i.From), append(p.Untils, i.Until)
	}
	waiting, err := dbsqlc.New().QuietHoursWaiting(ctx, tx, p)
	preview.Waiting = &waiting
	return preview, err
}

// putQuietHours writes quiet hours.
func putQuietHours(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, h QuietHours, by envelope.Actor) error {
	windows, err := json.Marshal(h.Windows)
	if err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().QuietHoursUpsert(ctx, tx, &dbsqlc.QuietHoursUpsertParams{
		TenantID: tenant, Scope: string(h.Scope), Subject: h.Subject, Timezone: h.Timezone,
		Windows: windows, SpreadSeconds: h.Spread.Seconds(), UpdatedBy: string(by),
	}))
}

// Employees returns the entries of a tenant ordered by id, so the default one
// first: those with the ids, or all without ids.
func Employees(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids ...envelope.EmployeeID) ([]Employee, error) {
	rows, err := dbsqlc.New().EmployeeList(ctx, tx, &dbsqlc.EmployeeListParams{TenantID: tenant, EmployeeIds: postgres.UUIDs(ids)})
	return postgres.Map(rows, err, func(r dbsqlc.EmployeeListRow) Employee {
		return Employee{r.EmployeeID, r.Name, policy.Trust(r.Trust), r.Scopes}
	})
}

// TenantOf returns a tenant's own settings. If there is no such tenant, the
// error is fault.NotFound.
func TenantOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Tenant, error) {
	t, _, err := tenantOf(ctx, tx, tenant)
	return t, err
}

// tenantOf also reports whether the do-not-contact list has an entry.
func tenantOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (t Tenant, doNotContact bool, err error) {
	row, err := dbsqlc.New().TenantSettings(ctx, tx, tenant)
	return Tenant{
		Timezone: row.Timezone, PhoneRegion: row.PhoneRegion, PlusAddressing: row.PlusAddressing,
		SessionPending: new(int(row.SessionPendingMax)), SessionMinute: new(int(row.SessionMinuteMax)),
	}, row.HasDoNotContact, postgres.Found(err, fault.New(fault.NotFound, "no tenant %s", tenant))
}

// ToolRules returns the rules of operators about a tenant's tools, ordered by
// tool. Empty rules are omitted.
func ToolRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]ToolRule, error) {
	rows, err := dbsqlc.New().ToolRuled(ctx, tx, tenant)
	all, err := postgres.Map(rows, err, func(r dbsqlc.ToolRuledRow) ToolRule {
		rule := ToolRule{Source: r.SourceID, Name: r.Name, Scopes: r.Scopes, Retry: wire.Retry{
			MaxAttempts: int(postgres.OrZero(r.MaxAttempts)), Jitter: r.RetryJitter,
			Base: durationOf(postgres.OrZero(r.RetryBaseSeconds)), Cap: durationOf(postgres.OrZero(r.RetryCapSeconds)),
		}, Timeout: durationOf(postgres.OrZero(r.TimeoutSeconds))}
		if r.Recipients != nil {
			rule.Recipients = &r.Recipients
		}
		return rule
	})
	slices.SortFunc(all, func(a, b ToolRule) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

// putToolRule writes a rule.
func putToolRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ToolRule) error {
	p := &dbsqlc.ToolRulePutParams{
		TenantID: tenant, SourceID: r.Source, Name: r.Name, Scopes: r.Scopes, MaxAttempts: postgres.OrNull(int32(r.Retry.MaxAttempts)),
		RetryBaseSeconds: postgres.OrNull(r.Retry.Base.Seconds()), RetryCapSeconds: postgres.OrNull(r.Retry.Cap.Seconds()), RetryJitter: r.Retry.Jitter,
		TimeoutSeconds: postgres.OrNull(r.Timeout.Seconds()),
	}
	if r.Recipients != nil {
		// An empty list means no recipients; nil would be NULL.
		p.Recipients = append([]string{}, *r.Recipients...)
	}
	return violations.Fault(dbsqlc.New().ToolRulePut(ctx, tx, p))
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"tenants_session_pending_max_check": fault.New(fault.Invalid, "a session's limits must be 0 to 1000000"),
	"tenants_session_minute_max_check":  fault.New(fault.Invalid, "a session's limits must be 0 to 1000000"),
	"buckets_tenant_id_fkey":            fault.New(fault.NotFound, "no such tenant"),
	"buckets_name_check":                fault.New(fault.Invalid, "a bucket's name must be 1 to 100 of a-z, 0-9, dot, - and _, and start with a letter or a digit"),
	"buckets_rate_check":                fault.New(fault.Invalid, "a bucket's rate must have a limit of at least 1, an interval of at least a millisecond, and a burst of at least 1"),
	"buckets_calendar_check":            fault.New(fault.Invalid, "a bucket's calendar must be hour, day, week or month, with a limit of at least 1"),
	"buckets_concurrency_check":         fault.New(fault.Invalid, "a bucket's concurrency must be at least 1"),
	"tools_timeout_check":               fault.New(fault.Invalid, "a time limit must be from a second to an hour"),
	"tools_retry_check":                 fault.New(fault.Invalid, "a retry's base and cap must be at least a millisecond, and its jitter 0 to 1"),
	"tools_retry_max_attempts_check":    fault.New(fault.Invalid, "max_attempts must be 1 to 100"),
	"quiet_hours_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"quiet_hours_scope_check":           fault.New(fault.Invalid, "quiet hours must be of a tenant, an employee, a bucket or a recipient"),
	"quiet_hours_spread_seconds_check":  fault.New(fault.Invalid, "the spread after quiet hours must be at most a day"),
	"employees_tenant_id_fkey":          fault.New(fault.NotFound, "no such tenant"),
	"employees_trust_check":             fault.New(fault.Invalid, "trust must be none, low, medium or high"),
}
