package limits

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
)

// ChangeKind is what becomes of a setting.
type ChangeKind string

// The kinds of change.
const (
	Added     ChangeKind = "added"
	Changed   ChangeKind = "changed"
	Removed   ChangeKind = "removed"
	Unchanged ChangeKind = "unchanged"
)

// Change is what becomes of one setting.
type Change struct {
	Kind ChangeKind `json:"change"`
	// Section is buckets, quiet_hours, employees, tools or settings.
	Section string `json:"section"`
	// Name tells which one of the section; empty for settings.
	Name string `json:"name,omitzero"`
	// Was and Is are the setting before and after; nil where there is none.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is,omitempty"`
}

// The sections of a Document, as they are named in it and in changes.
const (
	sectionBuckets   = "buckets"
	sectionQuiet     = "quiet_hours"
	sectionEmployees = "employees"
	sectionTools     = "tools"
	sectionSettings  = "settings"
)

// noun is what a section holds one of.
func noun(section string) string {
	switch section {
	case sectionBuckets:
		return "bucket"
	case sectionQuiet:
		return "quiet hours of"
	case sectionEmployees:
		return "employee"
	case sectionTools:
		return "tool"
	}
	return section
}

// subject says in a few words what a change is of.
func (c Change) subject() string {
	text := noun(c.Section)
	if c.Name != "" {
		text += " " + c.Name
	}
	return text + " " + string(c.Kind)
}

// ChangeOf compares a setting before and after; nil is none.
func ChangeOf(section, name string, was, is any) (Change, error) {
	c := Change{Section: section, Name: name}
	for _, side := range []struct {
		value any
		to    *json.RawMessage
	}{{was, &c.Was}, {is, &c.Is}} {
		if side.value == nil {
			continue
		}
		text, err := json.Marshal(side.value)
		if err != nil {
			return c, fmt.Errorf("encode %s: %w", section, err)
		}
		*side.to = text
	}
	switch {
	case c.Was == nil:
		c.Kind = Added
	case c.Is == nil:
		c.Kind = Removed
	case string(c.Was) == string(c.Is):
		c.Kind = Unchanged
	default:
		c.Kind = Changed
	}
	return c, nil
}

// item is the change as the audit keeps it.
func (c Change) item() audit.Item {
	it := audit.Item{Subject: c.subject(), Detail: make(map[string]any)}
	if c.Was != nil {
		it.Detail["was"] = c.Was
	}
	if c.Is != nil {
		it.Detail["is"] = c.Is
	}
	return it
}

// note writes one event that tells who changed what.
func note(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, by string, items ...audit.Item) error {
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: items})
}
