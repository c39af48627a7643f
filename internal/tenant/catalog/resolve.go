package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Resolve finds the tool that a proposal means: by source and name, or by
// Composio app and name. Without either the name may be source:name, the full
// name module.entity.action, or the bare name. The first of these always means
// that tool, since no source can take another one's id; of the others exactly
// one tool must have the name, whichever way. Tools in quarantine stand in
// nobody's way.
func (c *Catalog) Resolve(named envelope.Tool) (*Tool, error) {
	if source := cmp.Or(named.Source, named.ComposioApp); source != "" {
		if t, ok := c.tools[policy.Key{Source: source, Action: named.Name}]; ok && c.sources[source].Enabled {
			return t, nil
		}
		if src, ok := c.sources[source]; !ok || !src.Enabled {
			return nil, check.Invalid("/tool/source", "unknown_source", "no such source; list the tools to see the ones there are")
		}
		return nil, check.Invalid("/tool/name", "unknown_tool", "the source has no such tool; list the tools to see the ones there are")
	}
	if id, action, found := strings.Cut(named.Name, ":"); found {
		if t, ok := c.tools[policy.Key{Source: id, Action: action}]; ok && c.sources[id].Enabled {
			return t, nil
		}
	}
	found := slices.DeleteFunc(slices.Clone(c.named[named.Name]), func(t *Tool) bool { return !c.sources[t.Key.Source].Enabled })
	slices.SortFunc(found, compareKeys)
	found = slices.Compact(found)
	if usable := slices.DeleteFunc(slices.Clone(found), func(t *Tool) bool { return t.Quarantined }); len(usable) > 0 {
		found = usable
	}
	switch len(found) {
	case 0:
		return nil, check.Invalid("/tool/name", "unknown_tool", "no source has such a tool; list the tools to see the ones there are")
	case 1:
		return found[0], nil
	}
	keys := make([]string, min(len(found), maxListedKeys))
	for i := range keys {
		keys[i] = found[i].Key.String()
	}
	return nil, check.Invalid("/tool/source", "required", "several tools have this name; say which by its source: %s", strings.Join(keys, ", "))
}

// maxListedKeys bounds the tools that an error lists.
const maxListedKeys = 20
