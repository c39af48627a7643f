package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
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
	if err := m.checkDefinition(); err != nil {
		return err
	}
	args, err := parseArgs(args)
	if err != nil {
		return err
	}
	if err := m.Tool.Check(args); err != nil {
		return err
	}
	pointers, err := changes(m.Args, args)
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "the arguments of action %s cannot be read", m.action)
	}
	if len(pointers) == 0 {
		return nil
	}
	was := m.Args
	m.Args = args
	if err := s.decideAll(ctx); err != nil {
		return err
	}
	if m.now.Mode == envelope.ModeDeny {
		return fault.New(fault.Conflict, "policy denies these arguments: %s", m.now.Source)
	}
	if err := decision.Insert(ctx, s.tx, s.by.Tenant, m.now); err != nil {
		return err
	}
	e := editRecord{By: s.by.Name, At: m.Now.UTC(), Pointers: pointers, Note: note}
	if m.Args, err = storeEdit(ctx, s.tx, s.by, m.action, was, args, m.now.ID, s.settings.Version, e); err != nil {
		return err
	}
	m.decided, m.round, m.given, m.digest, m.voters = m.now.ID, m.round+1, 0, nil, nil
	return audit.Write(ctx, s.tx, audit.Event{Tenant: s.by.Tenant, Kind: audit.Edited, Actor: s.by.Name, Items: []audit.Item{{
		Action: m.action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired, Note: note,
		Detail: map[string]any{"pointers": pointers},
	}}})
}
