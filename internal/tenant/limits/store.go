package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// Load reads and compiles what is set for a tenant. A tenant that is not there
// is fault.NotFound.
func Load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Set, error) {
	q, id := dbsqlc.New(), uuid.UUID(tenant)
	row, err := q.TenantSettings(ctx, tx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	if err != nil {
		return nil, err
	}
	s := &Set{tenant: tenantFrom(row), doNotContact: row.HasDoNotContact}
	buckets, err := q.BucketSettingsList(ctx, tx, id)
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
	if s.employees, err = employeesByID(ctx, tx, tenant); err != nil {
		return nil, err
	}
	if s.quiet, err = loadQuiet(ctx, tx, tenant, s.tenant.ContactOptions()); err != nil {
		return nil, err
	}
	standing, err := q.PauseActiveList(ctx, tx, &id)
	if err != nil {
		return nil, err
	}
	s.pauses = make(map[pause.Target]pause.Pause, len(standing))
	for _, r := range standing {
		s.pauses[pause.Target{Scope: pause.Scope(r.Scope), Subject: r.Subject}] = pause.Pause{
			ID: pause.ID(r.PauseID), Scope: pause.Scope(r.Scope), Subject: r.Subject, Kill: r.Kill,
			Reason: r.Reason, By: r.PausedBy, At: r.PausedAt, KilledAt: r.KilledAt,
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
			set.employees[employeeOf(h.Subject)] = schedule
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

// QuietHoursList returns every quiet hours of a tenant, in order of scope and
// subject.
func QuietHoursList(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]QuietHours, error) {
	rows, err := dbsqlc.New().QuietHoursList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]QuietHours, len(rows))
	for i, r := range rows {
		h := &all[i]
		h.Scope, h.Subject, h.Timezone = QuietScope(r.Scope), r.Subject, r.Timezone
		h.Spread = new(durationOf(r.SpreadSeconds))
		if err := json.Unmarshal(r.Windows, &h.Windows); err != nil {
			return nil, fmt.Errorf("quiet hours of %s: %w", r.Scope, err)
		}
	}
	sortQuiet(all)
	return all, nil
}

// Employees returns every entry of a tenant, the default one first.
func Employees(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Employee, error) {
	rows, err := dbsqlc.New().EmployeeList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]Employee, len(rows))
	for i, r := range rows {
		all[i] = Employee{envelope.EmployeeID(r.EmployeeID), r.Name, policy.Trust(r.Trust), r.Scopes}
	}
	sortEmployees(all)
	return all, nil
}

func employeesByID(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (map[envelope.EmployeeID]Employee, error) {
	all, err := Employees(ctx, tx, tenant)
	byID := make(map[envelope.EmployeeID]Employee, len(all))
	for _, e := range all {
		byID[e.ID] = e
	}
	return byID, err
}

// TenantOf returns a tenant's own settings.
func TenantOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Tenant, error) {
	row, err := dbsqlc.New().TenantSettings(ctx, tx, uuid.UUID(tenant))
	if errors.Is(err, pgx.ErrNoRows) {
		return Tenant{}, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	if err != nil {
		return Tenant{}, err
	}
	return tenantFrom(row), nil
}

func tenantFrom(row dbsqlc.TenantSettingsRow) Tenant {
	return Tenant{
		Timezone: row.Timezone, PhoneRegion: row.PhoneRegion, PlusAddressing: row.PlusAddressing,
		SessionPending: new(int(row.SessionPendingMax)), SessionMinute: new(int(row.SessionMinuteMax)),
	}
}

// ToolRules returns what operators say about a tenant's tools; those that they
// say nothing about are left out.
func ToolRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]ToolRule, error) {
	every, err := everyTool(ctx, tx, tenant)
	return slices.DeleteFunc(every, ToolRule.empty), err
}

// everyTool returns a rule for each tool there is.
func everyTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]ToolRule, error) {
	rows, err := dbsqlc.New().ToolRuleList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	all := make([]ToolRule, len(rows))
	for i, r := range rows {
		all[i] = ToolRule{Source: r.SourceID, Name: r.Name, Scopes: r.Scopes, Retry: Retry{Jitter: r.RetryJitter}}
		rule := &all[i]
		if r.Recipients != nil {
			rule.Recipients = &r.Recipients
		}
		if r.MaxAttempts != nil {
			rule.Retry.MaxAttempts = int(*r.MaxAttempts)
		}
		if r.RetryBaseSeconds != nil {
			rule.Retry.Base = durationOf(*r.RetryBaseSeconds)
		}
		if r.RetryCapSeconds != nil {
			rule.Retry.Cap = durationOf(*r.RetryCapSeconds)
		}
	}
	sortRules(all)
	return all, nil
}
