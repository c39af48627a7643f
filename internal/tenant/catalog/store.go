package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Load reads a tenant's sources and tools.
func Load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Catalog, error) {
	q := dbsqlc.New()
	c := &Catalog{
		sources: make(map[string]Source), tools: make(map[policy.Key]*Tool), named: make(map[string][]*Tool),
	}
	sources, err := q.SourceList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	for _, r := range sources {
		if c.sources[r.SourceID], err = sourceFromRow(r); err != nil {
			return nil, err
		}
	}
	tools, err := q.ToolList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	for _, r := range tools {
		t, err := toolFromRow(r, c.sources[r.SourceID])
		if err != nil {
			return nil, err
		}
		if c.sources[r.SourceID].Kind == KindWebhook {
			t.extendRetries(r.MaxAttempts != 0)
		}
		c.tools[t.Key] = t
		for _, name := range []string{r.Name, t.FullName.String()} {
			c.named[name] = append(c.named[name], t)
		}
	}
	c.index = sync.OnceValue(func() *index { return newIndex(c.tools) })
	c.snapshotRules, err = SnapshotRules(ctx, tx, tenant, policy.Key{})
	return c, err
}

// SnapshotRules returns the snapshot rules of a tenant, including those of tools
// that their sources do not list at present; or of one tool, if of is not zero.
func SnapshotRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of policy.Key) (map[policy.Key]SnapshotRule, error) {
	rows, err := dbsqlc.New().SnapshotRuleList(ctx, tx, &dbsqlc.SnapshotRuleListParams{TenantID: tenant, SourceID: of.Source, ToolName: of.Action})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	reads := make(map[policy.Key]SnapshotRule, len(rows))
	for _, r := range rows {
		key := policy.Key{Source: r.SourceID, Action: r.ToolName}
		var read SnapshotRule
		if err := json.Unmarshal(r.Rule, &read); err != nil {
			return nil, fmt.Errorf("snapshot rule of %s: %w", key, err)
		}
		reads[key] = read
	}
	return reads, nil
}

// PutSnapshotRule sets the snapshot rule of a tool, or removes it if read is
// nil. The rule must have been checked by package action/snapshot.
func PutSnapshotRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, read *SnapshotRule) error {
	q := dbsqlc.New()
	if read == nil {
		n, err := q.SnapshotRuleDelete(ctx, tx, &dbsqlc.SnapshotRuleDeleteParams{TenantID: tenant, SourceID: key.Source, ToolName: key.Action})
		return postgres.Affected(n, err, fault.New(fault.NotFound, "no snapshots are set for %s", key))
	}
	rule, err := json.Marshal(read)
	if err != nil {
		return fmt.Errorf("encode snapshot rule of %s: %w", key, err)
	}
	return violations.Fault(q.SnapshotRulePut(ctx, tx, &dbsqlc.SnapshotRulePutParams{TenantID: tenant, SourceID: key.Source, ToolName: key.Action, Rule: rule}))
}

// Sources returns a tenant's stored sources, ordered by id.
func Sources(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Source, error) {
	rows, err := dbsqlc.New().SourceList(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	all := make([]Source, len(rows))
	for i, r := range rows {
		if all[i], err = sourceFromRow(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func sourceFromRow(r dbsqlc.SourceListRow) (Source, error) {
	src := Source{
		ID: r.SourceID, Kind: r.Kind, Config: r.Config, Secret: r.Secret, Enabled: r.Enabled,
		DefaultRisk: policy.ToolRisk(postgres.OrZero(r.DefaultRisk)), ListError: postgres.OrZero(r.ListError), ListedAt: r.ListedAt,
		DriftGuard: DriftGuard(r.DriftGuard), Quarantine: r.Quarantine, LeftOut: int(r.LeftOut), SkippedLines: int(r.SkippedLines),
		Unaccepted: len(r.AcceptedAddress) == 0, Generation: r.Generation, address: addressOf(r.Kind, r.Config), acceptedAddress: r.AcceptedAddress,
	}
	src.OnLostLogin = OnLostLogin(r.OnLostLogin)
	if r.LoginAt != nil {
		src.Login = &Login{
			Issuer: postgres.OrZero(r.Issuer), Scope: postgres.OrZero(r.Scope), By: postgres.OrZero(r.LoginBy), At: *r.LoginAt,
			ExpiresAt: r.ExpiresAt, LostAt: r.LostAt, LostReason: postgres.OrZero(r.LostReason),
			NeededScopes: r.NeededScopes, NeededTools: r.NeededTools,
		}
	}
	if err := json.Unmarshal(r.LeftOutTools, &src.LeftOutTools); err != nil {
		return src, fmt.Errorf("tools that source %s left out: %w", r.SourceID, err)
	}
	if err := json.Unmarshal(r.UncheckedTools, &src.UncheckedTools); err != nil {
		return src, fmt.Errorf("unchecked tools of source %s: %w", r.SourceID, err)
	}
	return src, nil
}

// PutSource inserts or updates a source. Its secret must be encrypted.
func PutSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, src Source) error {
	p := &dbsqlc.SourceUpsertParams{
		TenantID: tenant, SourceID: src.ID, Kind: src.Kind, Config: src.Config, Secret: src.Secret, Enabled: src.Enabled,
		DriftGuard: string(cmp.Or(src.DriftGuard, GuardFull)), Quarantine: src.Quarantine, OnLostLogin: string(cmp.Or(src.OnLostLogin, LostLoginWaits)), Unaccepted: src.Unaccepted, DefaultRisk: postgres.OrNull(string(src.DefaultRisk)),
	}
	if len(p.Config) == 0 {
		p.Config = json.RawMessage("{}")
	}
	p.Address = addressOf(p.Kind, p.Config)
	return violations.Fault(dbsqlc.New().SourceUpsert(ctx, tx, p))
}

// AcceptSource accepts the current address of a source, which ends the drift of
// its tools caused by it.
func AcceptSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, src Source) error {
	n, err := dbsqlc.New().SourceAccept(ctx, tx, &dbsqlc.SourceAcceptParams{
		TenantID: tenant, SourceID: src.ID, Address: addressOf(src.Kind, src.Config),
	})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no source %s", src.ID))
}

// DeleteSource removes a source and its tools. Envelopes that name them stay.
func DeleteSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	n, err := dbsqlc.New().SourceDelete(ctx, tx, &dbsqlc.SourceDeleteParams{TenantID: tenant, SourceID: id})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no source %s", id))
}

// AskRefresh requests that the fleet list a source soon, regardless of the age
// of its last listing. The request is fulfilled by a listing later than the
// returned time. The error is fault.NotFound if the source does not exist or is
// disabled.
func AskRefresh(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) (time.Time, error) {
	asked, err := dbsqlc.New().SourceRefreshAsk(ctx, tx, &dbsqlc.SourceRefreshAskParams{TenantID: tenant, SourceID: id})
	return asked, postgres.Found(err, fault.New(fault.NotFound, "no source %s that is switched on", id))
}

// Stale returns sources of any tenant to list: requested ones first, then those
// with the oldest listing.
func Stale(ctx context.Context, tx pgx.Tx, maxAge float64, most int) ([]StaleSource, error) {
	rows, err := dbsqlc.New().SourceStale(ctx, tx, &dbsqlc.SourceStaleParams{MaxAgeSeconds: maxAge, Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.SourceStaleRow) StaleSource {
		return StaleSource{r.TenantID, r.SourceID}
	})
}

// StaleSource is a source to list again.
type StaleSource struct {
	Tenant envelope.TenantID
	ID     string
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"sources_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"sources_pkey":                  fault.New(fault.Conflict, "a source with that id exists"),
	"sources_source_id_check":       fault.New(fault.Invalid, "a source's id must be 1 to 100 of a-z, 0-9, dot, - and _, and start with a letter or a digit"),
	"sources_kind_check":            fault.New(fault.Invalid, "a source's kind must be mcp, builtin, tool_gateway, composio, slack, linear, sentry, webhook, mail or dav"),
	"sources_default_risk_check":    fault.New(fault.Invalid, "risk must be read, write or danger"),
	"sources_drift_guard_check":     fault.New(fault.Invalid, "drift_guard must be full or interface"),
	"sources_on_lost_login_check":   fault.New(fault.Invalid, "on_lost_login must be wait or fail"),
	"tools_source_id_fkey":          fault.New(fault.NotFound, "no such source"),
	"tools_risk_override_check":     fault.New(fault.Invalid, "risk must be read, write or danger"),
	"tools_effect_override_check":   fault.New(fault.Invalid, "effect must be read, idempotent, keyed or once"),
	"tools_headline_check":          fault.New(fault.Invalid, "a headline must have at most 200 characters"),
	"tools_name_parts_check":        fault.New(fault.Invalid, "a part of a tool's full name must be 1 to 100 of a-z, 0-9, - and _, and start with a letter or a digit"),
	"tools_max_attempts_check":      fault.New(fault.Invalid, "max_attempts must be 1 to 100"),
	"snapshot_rules_source_id_fkey": fault.New(fault.NotFound, "no such source"),
}
