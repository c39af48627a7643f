package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
)

// editRecord notes one edit, as it is kept.
type editRecord struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Pointers are JSON Pointers into the arguments of what it changed.
	Pointers []string `json:"pointers"`
	Note     string   `json:"note,omitzero"`
}

// edit sets what will be sent.
func (s *decisionTx) edit(ctx context.Context, m *item, args json.RawMessage, note string) error {
	tool, err := s.definition(m)
	if err != nil {
		return err
	}
	if args, err = parseArgs(args); err != nil {
		return err
	}
	if err := tool.Check(args); err != nil {
		return err
	}
	pointers, err := changes(m.proposed.Args, args)
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "the arguments of action %s cannot be read", m.action)
	}
	if len(pointers) == 0 {
		return nil
	}
	was := m.proposed.Args
	m.proposed.Args = args
	listed, err := s.onDoNotContact(ctx)
	if err != nil {
		return err
	}
	p := m.proposed
	p.Listed = listed[m.action]
	decision := s.settings.Decide(tool, p)
	if decision.Mode == envelope.ModeDeny {
		return fault.New(fault.Conflict, "policy denies these arguments: %s", decision.Source)
	}
	if err := StoreDecisions(ctx, s.tx, s.by.Tenant, decision); err != nil {
		return err
	}
	e := editRecord{By: s.by.Name, At: m.proposed.Now.UTC(), Pointers: pointers, Note: note}
	if m.proposed.Args, err = storeEdit(ctx, s.tx, s.by, m.action, was, args, decision.ID, s.settings.Version, e); err != nil {
		return err
	}
	m.decision, m.round, m.given, m.digest, m.voters = decision.ID, m.round+1, 0, nil, nil
	return audit.Write(ctx, s.tx, audit.Event{Tenant: s.by.Tenant, Kind: audit.Edited, Actor: s.by.Name, Items: []audit.Item{{
		Action: m.action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired, Note: note,
		Detail: map[string]any{"pointers": pointers},
	}}})
}
