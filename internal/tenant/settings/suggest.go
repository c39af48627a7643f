package settings

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// Listing is the set of tools that a viewer may list.
type Listing int

const (
	// ListsNone means no tools.
	ListsNone Listing = iota
	// ListsUsable means the tools that policy does not deny, as agents list
	// them.
	ListsUsable
	// ListsAll also includes disabled tools, as people list them.
	ListsAll
)

// Listed returns the tools that a viewer may list, ordered by key.
func (s *Settings) Listed(by Viewer) []*catalog.Tool {
	switch by.Lists {
	case ListsUsable:
		return s.Visible(by)
	case ListsAll:
		return slices.DeleteFunc(s.Tools(), func(t *catalog.Tool) bool {
			src, ok := s.Source(t.Key.Source)
			return ok && src.ListError != "" || !t.Within(by.Tools)
		})
	case ListsNone:
	}
	return nil
}

// maxSuggestions bounds the unknown tools that one Suggester compares with the
// catalog.
const maxSuggestions = 50

// Suggester finds the tools that are similar to unknown names. It is for one
// request.
type Suggester struct {
	settings *Settings
	by       Viewer
	// keys and bare are the listed tools by source:name and by name alone; nil
	// until needed.
	keys, bare []string
	asked      int
}

// Suggest returns a Suggester of the tools that a viewer may list.
func (s *Settings) Suggest(by Viewer) *Suggester { return &Suggester{settings: s, by: by} }

// Tool adds the nearest names that the viewer may list to an error of Resolve
// for an unknown tool, and returns any other error unchanged. The suggestion
// depends only on the name and that list: it is the same for tools that do not
// exist and tools that are hidden from the viewer.
func (g *Suggester) Tool(named envelope.Tool, err error) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(broken.Fields) != 1 || !catalog.Unknown(broken.Fields[0]) {
		return err
	}
	name := named.Name
	if source := cmp.Or(named.Source, named.ComposioApp); source != "" {
		name = source + ":" + name
	}
	unknown := g.Unknown(name)
	if unknown == nil {
		return err
	}
	field := broken.Fields[0]
	field.Message = unknown.Error()
	return &envelope.InvalidError{Fields: []envelope.FieldError{field}}
}

// Unknown returns the error for an unknown name of a tool with the nearest
// names that the viewer may list; nil without any.
func (g *Suggester) Unknown(name string) error {
	if g.asked++; g.asked > maxSuggestions {
		return nil
	}
	if g.keys == nil {
		for _, t := range g.settings.Listed(g.by) {
			g.keys, g.bare = append(g.keys, t.Key.String()), append(g.bare, t.Key.Action)
		}
	}
	known := g.bare
	if strings.Contains(name, ":") {
		known = g.keys
	}
	return fault.Misspelt("tool", name, known)
}
