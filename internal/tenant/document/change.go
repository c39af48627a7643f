// Package document owns the application of a settings file to a tenant: sections
// of entries that are checked, compared with the stored ones, and written. It is
// independent of the meaning of the entries.
package document

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/audit"
)

// Change is a change of one entry of a section.
type Change struct {
	wire.SettingChange
	// noun names the kind of entry in events.
	noun string
}

// Changes collects the changes of a document.
type Changes struct {
	// Dry is set if changes must not be written.
	Dry  bool
	List []Change
}

// Record adds a change to the list, and calls write unless the entry is
// unchanged or c is dry. was and is are encoded as JSON; nil means that there is
// no entry.
func (c *Changes) Record(section, noun, name string, was, is any, write func() error) error {
	change := Change{wire.SettingChange{Kind: wire.ChangeChanged, Section: section, Name: name}, noun}
	var err error
	if change.Was, err = encode(was); err == nil {
		change.Is, err = encode(is)
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", section, err)
	}
	switch {
	case change.Was == nil:
		change.Kind = wire.ChangeAdded
	case change.Is == nil:
		change.Kind = wire.ChangeRemoved
	case string(change.Was) == string(change.Is):
		change.Kind = wire.ChangeUnchanged
	}
	c.List = append(c.List, change)
	if c.Dry || change.Kind == wire.ChangeUnchanged {
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

// Items returns an audit item for each written change. Its subject begins with
// prefix.
func (c *Changes) Items(prefix string) []audit.Item {
	var items []audit.Item
	for _, change := range c.List {
		if c.Dry || change.Kind == wire.ChangeUnchanged {
			continue
		}
		it := audit.Item{Subject: prefix + change.noun + " " + change.Kind, Detail: make(map[string]any)}
		if change.Name != "" {
			it.Subject = prefix + change.noun + " " + change.Name + " " + change.Kind
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
