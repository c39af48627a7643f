package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// forgetAfterDays is the retention of tools that are no longer listed and were
// never configured by an operator.
const forgetAfterDays = 90

// PutListing stores a listing, and records the changes since the previous one.
// Tools that the source no longer lists are kept as gone, so that they are not
// treated as new when they return. New tools are accepted as first seen or put
// into quarantine; changed ones keep the accepted definition. Tools with a name
// that is invalid in an envelope or a duplicate, or with a definition without a
// canonical form, are omitted and counted with the source.
func PutListing(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, tools []source.Tool) error {
	changed, err := putListing(ctx, tx, tenant, source, tools)
	if err != nil || len(changed) == 0 {
		return err
	}
	return audit.Write(ctx, tx, listingEvent(tenant, source, changed))
}

// putListing is PutListing without the event. It returns the changes.
func putListing(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, tools []source.Tool) ([]listed, error) {
	q := dbsqlc.New()
	before, err := q.ToolListed(ctx, tx, &dbsqlc.ToolListedParams{TenantID: tenant, SourceID: source})
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.ToolUpsertManyParams{TenantID: tenant, SourceID: source, Names: []string{}}
	var older [][]byte
	kept, leftOut := namedOnce(tools)
	reasons, err := json.Marshal(leftOut)
	if err != nil {
		return nil, err
	}
	unchecked, err := json.Marshal(uncheckedTools(kept))
	if err != nil {
		return nil, err
	}
	for _, t := range kept {
		hints, err := json.Marshal(t.Hints)
		if err != nil {
			return nil, err
		}
		p.Names, p.Titles, p.Descriptions = append(p.Names, t.Name), append(p.Titles, t.Title), append(p.Descriptions, t.Description)
		p.InputSchemas, p.OutputSchemas = append(p.InputSchemas, t.InputSchema), append(p.OutputSchemas, t.OutputSchema)
		p.Hints, p.Effects, p.Digests = append(p.Hints, hints), append(p.Effects, string(t.Effect)), append(p.Digests, t.digest)
		reversal, err := defaultReversal(source, t.Reversal)
		if err != nil {
			return nil, err
		}
		p.DefaultReversals = append(p.DefaultReversals, reversal)
		older = append(older, partsDigest(t.Name, definitionOf(t.Tool)))
	}
	if len(p.Names) > 0 {
		if err := violations.Fault(q.ToolUpsertMany(ctx, tx, p)); err != nil {
			return nil, err
		}
		if err := q.ToolAcceptedAgain(ctx, tx, &dbsqlc.ToolAcceptedAgainParams{TenantID: tenant, SourceID: source, Names: p.Names, Older: older}); err != nil {
			return nil, err
		}
	}
	if err := q.ToolMissing(ctx, tx, &dbsqlc.ToolMissingParams{TenantID: tenant, SourceID: source, Names: p.Names}); err != nil {
		return nil, err
	}
	if err := q.ToolPrune(ctx, tx, &dbsqlc.ToolPruneParams{TenantID: tenant, SourceID: source, Days: forgetAfterDays}); err != nil {
		return nil, err
	}
	n, err := q.SourceListed(ctx, tx, &dbsqlc.SourceListedParams{
		TenantID: tenant, SourceID: source, LeftOut: int32(len(tools) - len(p.Names)), LeftOutTools: reasons, // bounded by the listing
		UncheckedTools: unchecked, HasTools: len(p.Names) > 0,
	})
	return compareListing(before, p, older), postgres.Affected(n, err, fault.New(fault.NotFound, "no source %s", source))
}

// compareListing returns the changes by a listing.
func compareListing(before []dbsqlc.ToolListedRow, now *dbsqlc.ToolUpsertManyParams, older [][]byte) []listed {
	known := make(map[string]dbsqlc.ToolListedRow, len(before))
	for _, r := range before {
		known[r.Name] = r
	}
	var changed []listed
	for i, name := range now.Names {
		was, ok := known[name]
		delete(known, name)
		switch {
		case !ok && len(before) > 0:
			changed = append(changed, listed{name, listedNew})
		case ok && was.Gone:
			changed = append(changed, listed{name, listedAgain})
		case ok && !bytes.Equal(was.Digest, now.Digests[i]) && !bytes.Equal(was.Digest, older[i]):
			changed = append(changed, listed{name, listedChanged})
		}
	}
	for _, r := range before {
		if _, missing := known[r.Name]; missing && !r.Gone {
			changed = append(changed, listed{r.Name, listedGone})
		}
	}
	return changed
}

// PutSkippedLines stores the number of output lines of a source that were not
// messages.
func PutSkippedLines(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, lines int) error {
	return dbsqlc.New().SourceSkipped(ctx, tx, &dbsqlc.SourceSkippedParams{TenantID: tenant, SourceID: source, SkippedLines: int64(lines)})
}

// PutListError stores the reason why a listing failed. The tools of the source
// stay unchanged.
func PutListError(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source, why string) error {
	return dbsqlc.New().SourceNotListed(ctx, tx, &dbsqlc.SourceNotListedParams{TenantID: tenant, SourceID: source, ListError: why})
}

// AcceptTool accepts a tool's definition by the digest that the operator saw,
// and ends its quarantine. If the definition has changed since, the error is
// fault.Conflict.
func AcceptTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, digest []byte) error {
	n, err := dbsqlc.New().ToolAccept(ctx, tx, &dbsqlc.ToolAcceptParams{
		TenantID: tenant, SourceID: key.Source, Name: key.Action, Digest: digest,
	})
	return postgres.Affected(n, err, fault.New(fault.Conflict, "tool %s does not exist, or its definition has changed since it was shown", key))
}

// Overrides are settings of a tool by people; empty fields mean the inferred
// values.
type Overrides struct {
	Risk   policy.ToolRisk
	Effect envelope.Effect
	// MaxAttempts applies unless the tool's retry rule has a number.
	MaxAttempts int
}

// ConfigureTool sets a tool's overrides.
func ConfigureTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, o Overrides) error {
	n, err := dbsqlc.New().ToolConfigure(ctx, tx, &dbsqlc.ToolConfigureParams{
		TenantID: tenant, SourceID: key.Source, Name: key.Action, RiskOverride: postgres.OrNull(string(o.Risk)),
		EffectOverride: postgres.OrNull(string(o.Effect)), MaxAttempts: postgres.OrNull(int32(o.MaxAttempts)),
	})
	return postgres.Affected(n, violations.Fault(err), ErrNoTool)
}

// DescribeTool replaces the description of a tool by operators. The error is an
// *envelope.InvalidError, or fault.NotFound if the tool does not exist.
func DescribeTool(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, d Description) error {
	if err := d.Validate(); err != nil {
		return err
	}
	p := &dbsqlc.ToolDescribeParams{
		TenantID: tenant, SourceID: key.Source, Name: key.Action,
		Module: postgres.OrNull(d.Name.Module), Entity: postgres.OrNull(d.Name.Entity), Action: postgres.OrNull(d.Name.Action),
		Headline: postgres.OrNull(d.Headline),
	}
	if d.SideEffects != nil {
		// An empty list is stored as empty; nil would be NULL.
		p.SideEffects = append([]string{}, *d.SideEffects...)
	}
	if d.Reversal != nil {
		var err error
		if p.Reversal, err = json.Marshal(d.Reversal); err != nil {
			return err
		}
	}
	n, err := dbsqlc.New().ToolDescribe(ctx, tx, p)
	return postgres.Affected(n, violations.Fault(err), ErrNoTool)
}

// ErrNoTool is the error for a tool that does not exist for the caller.
var ErrNoTool = fault.New(fault.NotFound, "no such tool; list the tools to see their names")

func toolFromRow(r dbsqlc.ToolListRow, src Source) (*Tool, error) {
	t := &Tool{
		Key:        policy.Key{Source: r.SourceID, Action: r.Name},
		Definition: Definition{Title: r.Title, Description: r.Description, InputSchema: r.InputSchema, OutputSchema: r.OutputSchema},
		Digest:     r.Digest, Accepted: r.AcceptedDigest, Guard: src.DriftGuard, Quarantined: src.Unaccepted || len(r.AcceptedDigest) == 0, Scopes: r.Scopes,
		MaxAttempts: cmp.Or(int(r.MaxAttempts), DefaultMaxAttempts), schema: NewSchema(r.InputSchema),
	}
	if err := json.Unmarshal(r.Hints, &t.Hints); err != nil {
		return nil, fmt.Errorf("hints of tool %s: %w", t.Key, err)
	}
	var err error
	if t.AcceptedDefinition, err = parseDefinition(r.Accepted); err != nil {
		return nil, fmt.Errorf("accepted definition of tool %s: %w", t.Key, err)
	}
	if r.RetryBaseSeconds != nil && r.RetryCapSeconds != nil && r.RetryJitter != nil {
		t.Retry = Retry{Base: postgres.Seconds(*r.RetryBaseSeconds), Cap: postgres.Seconds(*r.RetryCapSeconds), Jitter: *r.RetryJitter}
	}
	t.Timeout = postgres.Seconds(postgres.OrZero(r.TimeoutSeconds))
	recipients := r.Recipients
	if t.Guessed = recipients == nil; t.Guessed {
		recipients = contact.InferRecipients(r.InputSchema)
	}
	if t.Recipients, err = contact.ParsePatterns(recipients); err != nil {
		return nil, fmt.Errorf("recipients of tool %s: %w", t.Key, err)
	}
	t.Drift, t.Moved = t.drift(), src.Moved()
	t.bind(src)
	t.Overrides = Overrides{
		Risk: policy.ToolRisk(postgres.OrZero(r.RiskOverride)), Effect: envelope.Effect(postgres.OrZero(r.EffectOverride)), MaxAttempts: int(postgres.OrZero(r.MaxAttemptsOverride)),
	}
	t.infer(t.Overrides, envelope.Effect(postgres.OrZero(r.Effect)), src.DefaultRisk)
	if t.Reversal, err = parseReversal(r.DefaultReversal); err != nil {
		return nil, fmt.Errorf("default reversal of tool %s: %w", t.Key, err)
	}
	described := Description{Name: FullName{postgres.OrZero(r.Module), postgres.OrZero(r.Entity), postgres.OrZero(r.Action)}, Headline: r.Headline}
	if r.SideEffects != nil {
		described.SideEffects = &r.SideEffects
	}
	if described.Reversal, err = parseReversal(r.Reversal); err != nil {
		return nil, fmt.Errorf("reversal of tool %s: %w", t.Key, err)
	}
	t.describe(described)
	return t, nil
}
