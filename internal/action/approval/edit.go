package approval

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Edits returns the edits of an action, oldest first, as storeEdit stored them.
func Edits(v outbox.View) []wire.Edit {
	edits := []wire.Edit{}
	if json.Unmarshal(v.Review.Edits, &edits) != nil {
		return []wire.Edit{}
	}
	return edits
}

// edit replaces the arguments that will be sent.
func (s *decisionTx) edit(ctx context.Context, m *item, args json.RawMessage, note string) error {
	if err := m.checkDefinition(); err != nil {
		return err
	}
	args, err := parseArgs(args)
	if err != nil {
		return err
	}
	if err := m.Tool.Check(ctx, args); err != nil {
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
		return fault.Coded(wire.CodePolicyDenied, fault.Conflict, "policy denies these arguments: %s", m.now.Source)
	}
	if err := decision.Insert(ctx, s.tx, s.by.Tenant, m.now); err != nil {
		return err
	}
	e := wire.Edit{By: s.by.actor(), At: m.Now.UTC(), Pointers: pointers, Note: note}
	if m.Args, err = storeEdit(ctx, s.tx, s.by, m.action, was, args, m.now.ID, s.settings.Version, e); err != nil {
		return err
	}
	m.decided, m.round = m.now.ID, round{number: m.number + 1, needed: m.needed}
	m.editors = append(m.editors, s.by.person())
	return audit.Write(ctx, s.tx, audit.Event{Tenant: s.by.Tenant, Kind: audit.Edited, Actor: s.by.actor(), Items: []audit.Item{{
		Action: m.action, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired, Note: note,
		Detail: map[string]any{"pointers": pointers},
	}}})
}

// maxChanges bounds the pointers stored for one edit. Beyond it the pointer of
// the whole document is stored.
const maxChanges = 100

// parseArgs checks arguments by the rules for proposals.
func parseArgs(args json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(args) {
		return nil, fault.New(fault.Invalid, "the arguments must be one JSON object")
	}
	const before, after = `{"type":"mcp.exec","external_id":"edit","tool":{"name":"edit"},"args":`, `}`
	p, err := envelope.Parse(slices.Concat([]byte(before), args, []byte(after)))
	if err != nil {
		return nil, err
	}
	return p.Args, nil
}

// changes returns the JSON Pointers at which two objects differ, in order,
// including added and removed arguments.
func changes(was, now json.RawMessage) ([]string, error) {
	a, _, err := jsonref.DecodeCanonical(was)
	if err != nil {
		return nil, err
	}
	b, _, err := jsonref.DecodeCanonical(now)
	if err != nil {
		return nil, err
	}
	var found []string
	compare(a, b, "", &found)
	if len(found) > maxChanges {
		return []string{""}, nil
	}
	return found, nil
}

func compare(a, b any, at string, found *[]string) {
	switch was := a.(type) {
	case map[string]any:
		if now, ok := b.(map[string]any); ok {
			keys := maps.Clone(was)
			maps.Copy(keys, now)
			for _, k := range slices.Sorted(maps.Keys(keys)) {
				x, had := was[k]
				y, has := now[k]
				if had && has {
					compare(x, y, at+"/"+envelope.EscapePointer(k), found)
				} else {
					*found = append(*found, at+"/"+envelope.EscapePointer(k))
				}
			}
			return
		}
	case []any:
		if now, ok := b.([]any); ok && len(was) == len(now) {
			for i := range was {
				compare(was[i], now[i], at+"/"+strconv.Itoa(i), found)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*found = append(*found, at)
	}
}
