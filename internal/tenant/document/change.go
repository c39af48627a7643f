// Package document owns how a tenant's settings are kept in a file: sections of
// entries that are checked, compared with the stored ones, and written. It does
// not know what the entries mean.
package document

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/internal/audit"
)

// ChangeKind is what happens to an entry.
type ChangeKind string

// The kinds of change.
const (
	Added     ChangeKind = "added"
	Changed   ChangeKind = "changed"
	Removed   ChangeKind = "removed"
	Unchanged ChangeKind = "unchanged"
)

// Change is what happens to one entry of a section.
type Change struct {
	Kind ChangeKind `json:"change"`
	// Section is the section's name in the document.
	Section string `json:"section"`
	// Name is the entry's key; empty for a section that is one value.
	Name string `json:"name,omitzero"`
	// Was and Is are the entry before and after; nil where there is none.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is,omitempty"`

	// noun names the kind of entry in events.
	noun string
}

// Changes collects the changes of a document.
type Changes struct {
	// Dry keeps every change from being written.
	Dry  bool
	List []Change
}

// Record adds a change to the list, and calls write unless nothing changes or
// c is dry. was and is are encoded as JSON; nil means that there is no entry.
func (c *Changes) Record(section, noun, name string, was, is any, write func() error) error {
	change := Change{Kind: Changed, Section: section, Name: name, noun: noun}
	var err error
	if change.Was, err = encode(was); err == nil {
		change.Is, err = encode(is)
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", section, err)
	}
	switch {
	case change.Was == nil:
		change.Kind = Added
	case change.Is == nil:
		change.Kind = Removed
	case string(change.Was) == string(change.Is):
		change.Kind = Unchanged
	}
	c.List = append(c.List, change)
	if c.Dry || change.Kind == Unchanged {
		return nil
	}
	return write()
}

func encode(entry any) (json.RawMessage, error) {
	if entry == nil {
		return nil, nil
	}
	return json.Marshal(entry)
}

// Items returns an audit item for each change that was written. Its subject
// begins with prefix.
func (c *Changes) Items(prefix string) []audit.Item {
	var items []audit.Item
	for _, change := range c.List {
		if c.Dry || change.Kind == Unchanged {
			continue
		}
		it := audit.Item{Subject: prefix + change.noun + " " + string(change.Kind), Detail: make(map[string]any)}
		if change.Name != "" {
			it.Subject = prefix + change.noun + " " + change.Name + " " + string(change.Kind)
		}
		if change.Was != nil {
			it.Detail["was"] = change.Was
		}
		if change.Is != nil {
			it.Detail["is"] = change.Is
		}
		items = append(items, it)
	}
	return items
}
