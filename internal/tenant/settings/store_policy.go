package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// PutMode sets the mode for the tools that a pattern covers, for an automation
// or, if that is empty, for the organisation.
func PutMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, automation, pattern string, mode envelope.Mode, by envelope.Actor) error {
	if err := checkMode(pattern, mode); err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().PolicyModeUpsert(ctx, tx, &dbsqlc.PolicyModeUpsertParams{
		TenantID: tenant, AutomationID: automation, Key: pattern, Mode: string(mode), UpdatedBy: string(by),
	}))
}

// DeleteMode removes the mode of a pattern.
func DeleteMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, automation, pattern string) error {
	n, err := dbsqlc.New().PolicyModeDelete(ctx, tx, &dbsqlc.PolicyModeDeleteParams{TenantID: tenant, AutomationID: automation, Key: pattern})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no mode is set for %s", pattern))
}

// Modes returns every mode of a tenant, or those of the patterns, ordered by
// automation and pattern.
func Modes(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, patterns ...string) ([]Mode, error) {
	rows, err := dbsqlc.New().PolicyModeList(ctx, tx, &dbsqlc.PolicyModeListParams{TenantID: tenant, Keys: patterns})
	return postgres.Map(rows, err, func(r dbsqlc.PolicyModeListRow) Mode {
		return Mode{r.AutomationID, r.Key, r.Mode, lastChange(r.Version, r.UpdatedAt, r.UpdatedBy)}
	})
}

// PutDanger sets the mode of tools with the risk danger and without a mode: deny
// or require_approval.
func PutDanger(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, mode envelope.Mode) error {
	if err := checkDanger(mode); err != nil {
		return err
	}
	n, err := dbsqlc.New().TenantDangerPut(ctx, tx, &dbsqlc.TenantDangerPutParams{TenantID: tenant, DangerMode: string(mode)})
	return postgres.Affected(n, violations.Fault(err), fault.New(fault.NotFound, "no such tenant"))
}

// Danger returns the mode of the risk danger.
func Danger(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (envelope.Mode, error) {
	mode, err := dbsqlc.New().TenantDanger(ctx, tx, tenant)
	return envelope.Mode(mode), err
}

// PutRule inserts or updates a rule about arguments of the snapshot's tenant,
// after Settings.CheckRule.
func PutRule(ctx context.Context, tx pgx.Tx, snap *Settings, r Rule, by envelope.Actor) error {
	if err := snap.CheckRule(r); err != nil {
		return err
	}
	q := dbsqlc.New()
	others, err := q.PolicyRuleCount(ctx, tx, &dbsqlc.PolicyRuleCountParams{TenantID: snap.Tenant, RuleID: r.ID})
	if err := checkCount(others, err, maxRules, "rules about arguments"); err != nil {
		return err
	}
	return violations.Fault(q.PolicyRuleUpsert(ctx, tx, &dbsqlc.PolicyRuleUpsertParams{
		TenantID: snap.Tenant, RuleID: r.ID, AutomationID: r.Automation, Key: r.Pattern, Expression: r.Expression, Mode: r.Mode, Reason: r.Reason,
		Enabled: r.Enabled, UpdatedBy: string(by),
	}))
}

// DeleteRule removes a rule about arguments.
func DeleteRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	n, err := dbsqlc.New().PolicyRuleDelete(ctx, tx, &dbsqlc.PolicyRuleDeleteParams{TenantID: tenant, RuleID: id})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no rule %s", id))
}

// Rules returns every rule about arguments of a tenant, or those with the ids,
// ordered by id.
func Rules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids ...string) ([]Rule, error) {
	rows, err := dbsqlc.New().PolicyRuleList(ctx, tx, &dbsqlc.PolicyRuleListParams{TenantID: tenant, RuleIds: ids})
	return postgres.Map(rows, err, func(r dbsqlc.PolicyRuleListRow) Rule {
		return Rule{
			ID: r.RuleID, Automation: r.AutomationID, Pattern: r.Key, Expression: r.Expression, Mode: r.Mode, Reason: r.Reason, Enabled: r.Enabled,
			LastChange: lastChange(r.Version, r.UpdatedAt, r.UpdatedBy),
		}
	})
}

// PutSessionMode sets the mode of a session for the tools that a pattern covers,
// for a duration from now, and returns the expiry.
func PutSessionMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, m SessionMode, lasts time.Duration, by envelope.Actor) (time.Time, error) {
	if err := checkMode(m.Pattern, m.Mode); err != nil {
		return time.Time{}, err
	}
	if m.Session == "" {
		return time.Time{}, fault.New(fault.Invalid, "a session's mode must name the session")
	}
	if lasts < time.Second || lasts > MaxSessionMode {
		return time.Time{}, fault.New(fault.Invalid, "a session's mode must last 1 second to 30 days")
	}
	q := dbsqlc.New()
	others, err := q.SessionModeCount(ctx, tx, &dbsqlc.SessionModeCountParams{TenantID: tenant, SessionID: m.Session, Key: m.Pattern})
	if err := checkCount(others, err, maxSessionModes, "modes of sessions"); err != nil {
		return time.Time{}, err
	}
	until, err := q.SessionModeUpsert(ctx, tx, &dbsqlc.SessionModeUpsertParams{
		TenantID: tenant, SessionID: m.Session, Key: m.Pattern, Mode: string(m.Mode), Seconds: lasts.Seconds(), UpdatedBy: string(by),
	})
	return until, violations.Fault(err)
}

// DeleteSessionMode removes the mode of a session for a pattern.
func DeleteSessionMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, session, pattern string) error {
	n, err := dbsqlc.New().SessionModeDelete(ctx, tx, &dbsqlc.SessionModeDeleteParams{TenantID: tenant, SessionID: session, Key: pattern})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "the session has no mode for %s", pattern))
}

// SessionModes returns the unexpired modes of a session, or of all if it is
// empty, ordered by session and pattern.
func SessionModes(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, session string) ([]SessionMode, error) {
	rows, err := dbsqlc.New().SessionModeList(ctx, tx, &dbsqlc.SessionModeListParams{TenantID: tenant, SessionID: session})
	return postgres.Map(rows, err, func(r dbsqlc.SessionModeListRow) SessionMode {
		return SessionMode{r.SessionID, r.Key, envelope.Mode(r.Mode), r.ExpiresAt, lastChange(r.Version, r.UpdatedAt, r.UpdatedBy)}
	})
}

// PutPreference disables the tools that a pattern covers, for an employee or for
// everybody.
func PutPreference(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, p Preference, by envelope.Actor) error {
	if _, err := policy.ParsePattern(p.Pattern); err != nil {
		return err
	}
	q := dbsqlc.New()
	others, err := q.PreferenceCount(ctx, tx, &dbsqlc.PreferenceCountParams{TenantID: tenant, EmployeeID: uuid.UUID(p.Employee), Key: p.Pattern})
	if err := checkCount(others, err, maxPreferences, "preferences"); err != nil {
		return err
	}
	return violations.Fault(q.PreferenceUpsert(ctx, tx, &dbsqlc.PreferenceUpsertParams{TenantID: tenant, EmployeeID: p.Employee, Key: p.Pattern, UpdatedBy: string(by), SetBy: postgres.OrNull(p.SetBy)}))
}

// DeletePreference enables the tools of a pattern again.
func DeletePreference(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, employee envelope.EmployeeID, pattern string) error {
	n, err := dbsqlc.New().PreferenceDelete(ctx, tx, &dbsqlc.PreferenceDeleteParams{TenantID: tenant, EmployeeID: employee, Key: pattern})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "%s is not switched off", pattern))
}

// Preferences returns the preferences of a tenant, ordered by employee and
// pattern: those with a pattern, or all if it is empty.
func Preferences(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, pattern string) ([]Preference, error) {
	rows, err := dbsqlc.New().PreferenceList(ctx, tx, &dbsqlc.PreferenceListParams{TenantID: tenant, Key: pattern})
	return postgres.Map(rows, err, func(r dbsqlc.PreferenceListRow) Preference {
		return Preference{r.EmployeeID, r.Key, postgres.OrZero(r.SetBy), lastChange(r.Version, r.UpdatedAt, r.UpdatedBy)}
	})
}

// PutGrant stores a grant and returns its id. If the tenant has MaxGrants active
// ones, the error is fault.Conflict.
func PutGrant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant) (uuid.UUID, error) {
	if err := g.Check(); err != nil {
		return uuid.Nil, err
	}
	q := dbsqlc.New()
	live, err := q.GrantCount(ctx, tx, tenant)
	if err := checkCount(live, err, MaxGrants, "grants that hold"); err != nil {
		return uuid.Nil, err
	}
	g.For = cmp.Or(g.For, DefaultGrant)
	if g.ID, err = uuid.NewV7(); err != nil {
		return uuid.Nil, err
	}
	if g.Pins == nil {
		g.Pins = map[string]json.RawMessage{}
	}
	pins, err := json.Marshal(g.Pins)
	if err != nil {
		return uuid.Nil, fmt.Errorf("pins: %w", err)
	}
	return g.ID, violations.Fault(q.GrantInsert(ctx, tx, &dbsqlc.GrantInsertParams{
		TenantID: tenant, GrantID: g.ID, SourceID: g.Tool.Source, ToolName: g.Tool.Action, ToolDigest: g.Digest,
		EmployeeID: postgres.OrNull(g.Employee), SessionID: g.Session, AutomationID: g.Automation, Pins: pins, Loose: append([]string{}, g.Loose...), Reason: g.Reason,
		FromAction: postgres.OrNull(uuid.UUID(g.From)), CreatedBy: string(g.By), Person: postgres.OrNull(g.Person), Seconds: g.For.Seconds(),
	}))
}

// RevokeGrant ends an active grant. If it does not exist, the error is
// fault.NotFound.
func RevokeGrant(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id uuid.UUID, by envelope.Actor) error {
	n, err := dbsqlc.New().GrantRevoke(ctx, tx, &dbsqlc.GrantRevokeParams{TenantID: tenant, GrantID: id, RevokedBy: new(string(by))})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no active grant %s", id))
}

// GrantFilter selects grants.
type GrantFilter struct {
	// Ended also selects expired and revoked grants.
	Ended bool
	// Before is the last grant of the previous page; the zero id selects the
	// first page. Most bounds the page.
	Before uuid.UUID
	Most   int
}

// Grants returns grants of a tenant, the latest first.
func Grants(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f GrantFilter) ([]Grant, error) {
	if f.Before == uuid.Nil {
		f.Before = uuid.Max
	}
	rows, err := dbsqlc.New().GrantList(ctx, tx, &dbsqlc.GrantListParams{TenantID: tenant, Ended: f.Ended, Before: f.Before, Most: int32(f.Most)})
	return postgres.TryMap(rows, err, func(r dbsqlc.GrantListRow) (Grant, error) {
		g := Grant{
			ID: r.GrantID, Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}, Digest: r.ToolDigest, Session: postgres.OrZero(r.SessionID),
			Employee: postgres.OrZero(r.EmployeeID), Automation: postgres.OrZero(r.AutomationID), Reason: r.Reason,
			From: envelope.ActionID(postgres.OrZero(r.FromAction)), By: envelope.Actor(r.CreatedBy), Person: postgres.OrZero(r.Person), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
			RevokedAt: r.RevokedAt, RevokedBy: envelope.Actor(postgres.OrZero(r.RevokedBy)), Version: r.Version, Loose: r.Loose,
		}
		var pins bytes.Buffer // jsonb has spaces
		if err := cmp.Or(json.Compact(&pins, r.Pins), json.Unmarshal(pins.Bytes(), &g.Pins)); err != nil {
			return g, fmt.Errorf("pins of grant %s: %w", r.GrantID, err)
		}
		// A grant of an earlier version pins only its pins.
		if _, whole := g.Pins[policy.Everything]; !whole {
			g.Loose = []string{policy.Everything}
		}
		return g, nil
	})
}

// checkCount returns err, or fault.Conflict if n is already the maximum of
// something.
func checkCount(n int64, err error, most int, things string) error {
	if err == nil && n >= int64(most) {
		return fault.New(fault.Conflict, "there are %d %s already, which is the limit; delete one first", most, things)
	}
	return err
}

// Expire deletes expired modes of sessions, and records expired grants, so that
// the versions of their tenants increase. It handles up to most of each, of any
// tenant, and returns the larger of the two counts.
func Expire(ctx context.Context, tx pgx.Tx, most int) (int, error) {
	q := dbsqlc.New()
	modes, err := q.SessionModePrune(ctx, tx, int32(most))
	if err != nil {
		return 0, fmt.Errorf("sessions' modes: %w", err)
	}
	grants, err := q.GrantExpire(ctx, tx, int32(most))
	if err != nil {
		return 0, fmt.Errorf("grants: %w", err)
	}
	return int(max(modes, grants)), nil
}

// loadPolicy reads the tenant's policy.
func (s *Settings) loadPolicy(ctx context.Context, tx pgx.Tx, language func() (*policy.Language, error)) error {
	stored, err := storedDocument(ctx, tx, s.Tenant)
	if err != nil {
		return err
	}
	sessions, err := SessionModes(ctx, tx, s.Tenant, "")
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	grants, err := Grants(ctx, tx, s.Tenant, GrantFilter{Most: MaxGrants})
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	s.reviews = compileReviews(stored.Reviews)
	s.setModes(stored.Modes)
	s.danger = stored.Danger
	s.layers = layers{language: language, sessions: compileSessions(sessions), grants: compileGrants(grants)}
	s.layers.setRules(stored.Rules)
	s.layers.setPreferences(stored.Preferences)
	return nil
}

func lastChange(version int64, at time.Time, by string) LastChange {
	return LastChange{Version: version, UpdatedAt: at, UpdatedBy: envelope.Actor(by)}
}
