package request

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The nouns of the things whose names Suggest compares.
const (
	NounTool   = "tool"
	NounSource = "source"
	NounBucket = "bucket"
)

// Suggest returns an error about the unknown name of a tool, source or bucket
// with the nearest names that the caller may list, and any other error as it
// is. The answer depends on the name and that list alone: it is the same for
// things that do not exist and things that are not the caller's.
func (c *Call) Suggest(noun, name string, err error) error {
	field, invalid := unknownField(err)
	if missing := errors.Is(err, fault.NotFound) && (noun != NounTool || errors.Is(err, catalog.ErrNoTool)); !invalid && !missing {
		return err
	}
	known := c.listable(noun, name)
	near := fault.Nearest(name, known)
	if len(near) == 0 || slices.Contains(known, name) {
		return err
	}
	unknown := fault.Unknown(noun, name, known)
	if invalid {
		field.Message = unknown.Error()
		return &envelope.InvalidError{Fields: []envelope.FieldError{field}}
	}
	return unknown
}

// unknownField returns the field of an error about nothing but an unknown name.
func unknownField(err error) (envelope.FieldError, bool) {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(broken.Fields) != 1 {
		return envelope.FieldError{}, false
	}
	f := broken.Fields[0]
	return f, f.Rule == "unknown_tool" || f.Rule == "unknown_source" || f.Rule == check.RuleUnknown && f.Pointer == "/subject"
}

// listable returns the names of tools, sources or buckets that the caller may
// list; none if they cannot be read now. Tools have their bare names where the
// name to compare has no source.
func (c *Call) listable(noun, name string) []string {
	scopes := map[string]identity.Scope{NounTool: identity.CatalogRead, NounSource: identity.CatalogRead, NounBucket: identity.LimitsRead}
	scope, ok := scopes[noun]
	agent := c.By.Role == identity.RoleAgent
	if !ok || !c.By.Has(scope) || agent && noun != NounTool {
		return nil
	}
	names, err := Read(c, func(ctx context.Context, tx pgx.Tx) (names []string, err error) {
		snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
		if err != nil {
			return nil, err
		}
		switch noun {
		case NounTool:
			for _, t := range VisibleTools(snap, agent, c.Viewer(state)) {
				if strings.Contains(name, ":") {
					names = append(names, t.Key.String())
				} else {
					names = append(names, t.Key.Action)
				}
			}
		case NounSource:
			for _, src := range snap.Sources() {
				if policy.CoversSource(c.By.Tools, src.ID) {
					names = append(names, src.ID)
				}
			}
		case NounBucket:
			names = snap.Limits.BucketNames()
		}
		return names, nil
	})
	if err != nil {
		return nil // the suggestion is left out
	}
	return names
}

// Viewer returns the caller as policy sees who looks at the catalog.
func (c *Call) Viewer(state settings.State) settings.Viewer {
	return settings.Viewer{Employee: c.By.Employee, Session: c.By.Session, Tools: c.By.Tools, Automation: c.Query.Get("automation_id"), Now: state.Now}
}

// VisibleTools returns the tools that a caller may see: agents see what they may
// use, people also what is switched off.
func VisibleTools(snap *settings.Settings, agent bool, viewer settings.Viewer) []*catalog.Tool {
	if agent {
		return snap.Visible(viewer)
	}
	return slices.DeleteFunc(snap.Tools(), func(t *catalog.Tool) bool {
		src, ok := snap.Source(t.Key.Source)
		return ok && src.ListError != "" || !t.Within(viewer.Tools)
	})
}
