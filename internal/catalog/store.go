package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/limit"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// State is what a claim needs to know of a tenant before anything else.
type State struct {
	// Version is that of its catalog, policy and limits.
	Version int64
	// Ailing says that a source of it may have to be left alone.
	Ailing bool
}

// States returns the current state of each tenant that exists.
func States(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID) (map[envelope.TenantID]State, error) {
	ids := make([]uuid.UUID, len(tenants))
	for i, t := range tenants {
		ids[i] = uuid.UUID(t)
	}
	rows, err := dbsqlc.New().TenantVersions(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	states := make(map[envelope.TenantID]State, len(rows))
	for _, r := range rows {
		states[envelope.TenantID(r.TenantID)] = State{r.ConfigVersion, r.Ailing}
	}
	return states, nil
}

// PutSource makes or changes a source. Its secret must be sealed.
func PutSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, src Source) error {
	p := &dbsqlc.SourceUpsertParams{
		TenantID: uuid.UUID(tenant), SourceID: src.ID, Kind: src.Kind, Config: src.Config, Secret: src.Secret, Enabled: src.Enabled,
	}
	if len(p.Config) == 0 {
		p.Config = json.RawMessage("{}")
	}
	if src.DefaultRisk != "" {
		p.DefaultRisk = new(string(src.DefaultRisk))
	}
	return dbsqlc.New().SourceUpsert(ctx, tx, p)
}

// DeleteSource removes a source and its tools. Envelopes that name them stay.
func DeleteSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	n, err := dbsqlc.New().SourceDelete(ctx, tx, &dbsqlc.SourceDeleteParams{TenantID: uuid.UUID(tenant), SourceID: id})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no source %s", id)
	}
	return err
}

// PutListing stores what a source listed: tools it has no more are removed,
// new ones are accepted as first seen, changed ones keep what was accepted.
func PutListing(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, tools []executor.Tool) error {
	q, n := dbsqlc.New(), len(tools)
	p := &dbsqlc.ToolUpsertManyParams{
		TenantID: uuid.UUID(tenant), SourceID: source, Names: make([]string, n), Titles: make([]string, n), Descriptions: make([]string, n),
		InputSchemas: make([][]byte, n), OutputSchemas: make([][]byte, n), Hints: make([][]byte, n), Effects: make([]string, n), Digests: make([][]byte, n),
	}
	for i, t := range tools {
		digest, err := Digest(t)
		if err != nil {
			return fmt.Errorf("digest of tool %d: %w", i, err)
		}
		hints, err := json.Marshal(t.Hints)
		if err != nil {
			return err
		}
		p.Names[i], p.Titles[i], p.Descriptions[i] = t.Name, t.Title, t.Description
		p.InputSchemas[i], p.OutputSchemas[i], p.Hints[i], p.Effects[i], p.Digests[i] = t.InputSchema, t.OutputSchema, hints, string(t.Effect), digest
	}
	if n > 0 {
		if err := q.ToolUpsertMany(ctx, tx, p); err != nil {
			return err
		}
	}
	if _, err := q.ToolDeleteMissing(ctx, tx, &dbsqlc.ToolDeleteMissingParams{TenantID: uuid.UUID(tenant), SourceID: source, Names: p.Names}); err != nil {
		return err
	}
	return q.SourceListed(ctx, tx, &dbsqlc.SourceListedParams{TenantID: uuid.UUID(tenant), SourceID: source})
}

// PutListError notes that a source could not be listed. Its tools stay as
// they were known.
func PutListError(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source, why string) error {
	return dbsqlc.New().SourceListed(ctx, tx, &dbsqlc.SourceListedParams{TenantID: uuid.UUID(tenant), SourceID: source, ListError: why})
}

// AcceptTool accepts a tool's definition by the digest that the operator saw.
// If it changed since, that is fault.Conflict.
func AcceptTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, digest []byte) error {
	n, err := dbsqlc.New().ToolAccept(ctx, tx, &dbsqlc.ToolAcceptParams{
		TenantID: uuid.UUID(tenant), SourceID: key.Source, Name: key.Action, Digest: digest,
	})
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "tool %s is not there, or its definition is no longer the one that was shown", key)
	}
	return err
}

// Overrides are what an operator sets for a tool; empty leaves it to what is
// inferred.
type Overrides struct {
	Risk        policy.ToolRisk
	Effect      envelope.Effect
	MaxAttempts int
}

// ConfigureTool sets a tool's overrides.
func ConfigureTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, o Overrides) error {
	p := &dbsqlc.ToolConfigureParams{TenantID: uuid.UUID(tenant), SourceID: key.Source, Name: key.Action}
	if o.Risk != "" {
		p.RiskOverride = new(string(o.Risk))
	}
	if o.Effect != "" {
		p.EffectOverride = new(string(o.Effect))
	}
	if o.MaxAttempts != 0 {
		p.MaxAttempts = new(int32(o.MaxAttempts))
	}
	n, err := dbsqlc.New().ToolConfigure(ctx, tx, p)
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no tool %s", key)
	}
	return err
}

// PutMode sets the mode for the tools that a pattern covers, for an
// automation or, if that is empty, for the organisation.
func PutMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, automation, pattern string, mode envelope.Mode, by string) error {
	if _, err := policy.ParsePattern(pattern); err != nil {
		return err
	}
	if _, err := policy.ParseMode(string(mode)); err != nil {
		return err
	}
	return dbsqlc.New().PolicyModeUpsert(ctx, tx, &dbsqlc.PolicyModeUpsertParams{
		TenantID: uuid.UUID(tenant), AutomationID: automation, Key: pattern, Mode: string(mode), UpdatedBy: by,
	})
}

// DeleteMode removes what PutMode set.
func DeleteMode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, automation, pattern string) error {
	n, err := dbsqlc.New().PolicyModeDelete(ctx, tx, &dbsqlc.PolicyModeDeleteParams{TenantID: uuid.UUID(tenant), AutomationID: automation, Key: pattern})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no mode is set for %s", pattern)
	}
	return err
}

// Mode is a rule of policy as stored; automation is empty for the
// organisation's.
type Mode struct {
	Automation, Pattern, Mode string
}

// Modes returns every rule of a tenant.
func Modes(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Mode, error) {
	rows, err := dbsqlc.New().PolicyModeList(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return nil, err
	}
	modes := make([]Mode, len(rows))
	for i, r := range rows {
		modes[i] = Mode{r.AutomationID, r.Key, r.Mode}
	}
	return modes, nil
}

// Stale returns sources of any tenant, the longest not listed first.
func Stale(ctx context.Context, tx pgx.Tx, maxAge float64, most int) ([]StaleSource, error) {
	rows, err := dbsqlc.New().SourceStale(ctx, tx, &dbsqlc.SourceStaleParams{MaxAgeSeconds: maxAge, Most: int64(most)})
	if err != nil {
		return nil, err
	}
	stale := make([]StaleSource, len(rows))
	for i, r := range rows {
		stale[i] = StaleSource{envelope.TenantID(r.TenantID), r.SourceID}
	}
	return stale, nil
}

// StaleSource is a source whose tools should be listed again.
type StaleSource struct {
	Tenant envelope.TenantID
	ID     string
}

// load reads a tenant's whole catalog. The version is read first: if
// something changes in between, the snapshot is newer than it says, and is
// only read again too often.
func load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Snapshot, error) {
	q, id := dbsqlc.New(), uuid.UUID(tenant)
	versions, err := q.TenantVersions(ctx, tx, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	limits, err := limit.Load(ctx, tx, tenant)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	snap := &Snapshot{
		Tenant: tenant, Version: versions[0].ConfigVersion, Limits: limits,
		sources: make(map[string]Source), tools: make(map[policy.Key]*Tool), byName: make(map[string][]*Tool),
		automations: make(map[string]policy.Rules), decider: policy.NewDecider(),
	}
	sources, err := q.SourceList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range sources {
		snap.sources[r.SourceID] = Source{
			ID: r.SourceID, Kind: r.Kind, Config: r.Config, Secret: r.Secret, Enabled: r.Enabled,
			DefaultRisk: policy.ToolRisk(text(r.DefaultRisk)), ListError: text(r.ListError),
		}
	}
	tools, err := q.ToolList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range tools {
		t, err := toolFromRow(r, snap.sources[r.SourceID].DefaultRisk)
		if err != nil {
			return nil, err
		}
		snap.tools[t.Key] = t
		snap.byName[r.Name] = append(snap.byName[r.Name], t)
	}
	modes, err := q.PolicyModeList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	rules := make(map[string][]policy.Rule)
	for _, r := range modes {
		rules[r.AutomationID] = append(rules[r.AutomationID], policy.Rule{Key: r.Key, Mode: r.Mode})
	}
	for automation, rows := range rules {
		snap.automations[automation] = policy.Compile(rows)
	}
	snap.organisation = snap.automations[""]
	delete(snap.automations, "")
	return snap, nil
}

func toolFromRow(r dbsqlc.ToolListRow, defaultRisk policy.ToolRisk) (*Tool, error) {
	t := &Tool{
		Key: policy.Key{Source: r.SourceID, Action: r.Name}, Title: r.Title, Description: r.Description,
		InputSchema: r.InputSchema, OutputSchema: r.OutputSchema, Digest: r.Digest, Accepted: r.AcceptedDigest,
		MaxAttempts: DefaultMaxAttempts, check: newChecker(r.InputSchema),
	}
	if err := json.Unmarshal(r.Hints, &t.Hints); err != nil {
		return nil, fmt.Errorf("hints of tool %s: %w", t.Key, err)
	}
	if r.MaxAttempts != nil {
		t.MaxAttempts = int(*r.MaxAttempts)
	}
	if r.RetryBaseSeconds != nil && r.RetryCapSeconds != nil && r.RetryJitter != nil {
		t.Retry = Retry{Base: seconds(*r.RetryBaseSeconds), Cap: seconds(*r.RetryCapSeconds), Jitter: *r.RetryJitter}
	}
	recipients := r.Recipients
	if t.Guessed = recipients == nil; t.Guessed {
		recipients = gate.GuessRecipients(r.InputSchema)
	}
	var err error
	if t.Recipients, err = gate.ParsePatterns(recipients); err != nil {
		return nil, fmt.Errorf("recipients of tool %s: %w", t.Key, err)
	}
	t.Scopes = r.Scopes
	hints := policy.Hints{ReadOnly: t.Hints.ReadOnly, Destructive: t.Hints.Destructive != nil && *t.Hints.Destructive}
	t.Risk = policy.InferRisk(policy.ToolRisk(text(r.RiskOverride)), hints, defaultRisk)
	t.Effect = policy.InferEffect(envelope.Effect(cmp.Or(text(r.EffectOverride), text(r.Effect))), t.Risk, hints)
	return t, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
