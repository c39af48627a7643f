package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// InboxKind is why something waits for a person.
type InboxKind string

// The kinds.
const (
	// InboxApproval: somebody has to decide about it.
	InboxApproval InboxKind = "approval"
	// InboxUnknown: it was sent, and somebody has to find out what happened.
	InboxUnknown InboxKind = "unknown"
	// InboxCompensation: a step of a workflow was done and could not be
	// reverted; a person has to see to it.
	InboxCompensation InboxKind = "compensation"
)

// InboxItem is something that waits for a person.
type InboxItem struct {
	Kind       InboxKind
	Action     envelope.ActionID
	Tool       policy.Key
	Args       json.RawMessage
	Risk       envelope.Risk
	Session    string
	Automation string
	Employee   envelope.EmployeeID
	// Since is when it was proposed; or, of unknown outcome, lost.
	Since time.Time
	// ExpiresAt is until when it can be decided; zero where it does not end.
	ExpiresAt time.Time
	// Needed and Given count the people who must agree, and do, ApprovedBy
	// names those.
	Needed, Given int
	ApprovedBy    []envelope.Actor
	EditedBy      envelope.Actor
	// Escalated reports whether it has waited so long that more people should know.
	Escalated bool
	// Policy is what asked for a person, Note what was noted when it came
	// back from the schedule.
	Policy, Note string
	// Drift says what is wrong with the tool's definition; empty if nothing.
	Drift string
	// ETag is what to decide with; empty where there is nothing to decide.
	ETag string
	// Code and Message say how it was lost, or why it was not taken back.
	Code, Message string
	// Workflow is what it is a step of, if it could not be reverted.
	Workflow uuid.UUID
	// Reversible reports whether nothing stays of it, or there is a way to revert
	// it, as its tool is in the catalog now.
	Reversible bool

	toolDigest []byte
}

// The words of InboxItem.Drift.
const (
	driftGone     = "its source no longer has the tool: it cannot be approved"
	driftSince    = "the tool's definition, or the address of its source, changed since this was proposed: it cannot be approved, and must be proposed again"
	driftAccepted = "the tool's definition, or the address of its source, is not the one that an operator accepted"
)

// Inbox returns what waits for a person behind an id, at most so much, oldest
// first.
func (d *Service) Inbox(ctx context.Context, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	var all []InboxItem
	err := postgres.InTx(ctx, d.db, postgres.API(tenant), func(tx pgx.Tx) error {
		waiting, err := inboxApprovals(ctx, tx, tenant, after, most)
		if err != nil {
			return err
		}
		lost, err := inboxUnknown(ctx, tx, tenant, after, most)
		if err != nil {
			return err
		}
		stayed, err := inboxCompensations(ctx, tx, tenant, after, most)
		if err != nil {
			return err
		}
		snap, err := d.catalog.Current(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for i := range waiting {
			waiting[i].Drift = drift(snap, &waiting[i])
		}
		all = slices.Concat(waiting, lost, stayed)
		for i := range all {
			tool, ok := snap.Tool(all[i].Tool)
			all[i].Reversible = ok && tool.Reversible()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b InboxItem) int { return bytes.Compare(a.Action[:], b.Action[:]) })
	return all[:min(len(all), most)], nil
}

func drift(snap *settings.Settings, it *InboxItem) string {
	tool, ok := snap.Tool(it.Tool)
	switch {
	case !ok:
		return driftGone
	case !tool.Is(it.toolDigest):
		return driftSince
	case tool.Drifted():
		return driftAccepted
	}
	return ""
}
