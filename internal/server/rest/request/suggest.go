package request

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The nouns for the names that Suggest compares.
const (
	NounTool   = "tool"
	NounSource = "source"
	NounBucket = "bucket"
)

// Suggest returns an error about the unknown name of a tool, source or bucket
// with the nearest names that the caller may list, and any other error
// unchanged. The result depends only on the name and that list: it is the same
// for things that do not exist and things that are not the caller's.
func (c *Call) Suggest(noun, name string, err error) error {
	field, invalid := unknownField(err)
	if missing := errors.Is(err, fault.NotFound) && (noun != NounTool || errors.Is(err, catalog.ErrNoTool)); !invalid && !missing {
		return err
	}
	unknown := c.misspelt(noun, name)
	if unknown == nil {
		return err
	}
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
	return f, catalog.Unknown(f) || f.Rule == check.RuleUnknown && f.Pointer == "/subject"
}

// misspelt returns the error for an unknown name with the nearest names that the
// caller may list; nil without any, and if they cannot be read now.
func (c *Call) misspelt(noun, name string) error {
	agent := c.By.Role == identity.RoleAgent
	switch noun {
	case NounTool:
		if access.Lists(c.By) == settings.ListsNone {
			return nil
		}
	case NounSource:
		if agent || !c.By.Has(identity.CatalogRead) {
			return nil
		}
	case NounBucket:
		if agent || !c.By.Has(identity.LimitsRead) {
			return nil
		}
	default:
		return nil
	}
	var unknown error
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		switch noun {
		case NounTool:
			unknown = snap.Suggest(c.Viewer(state)).Unknown(name)
		case NounSource:
			var names []string
			for _, src := range snap.Sources() {
				if policy.CoversSource(c.By.Tools, src.ID) {
					names = append(names, src.ID)
				}
			}
			unknown = fault.Misspelt(noun, name, names)
		case NounBucket:
			unknown = fault.Misspelt(noun, name, snap.Limits.BucketNames())
		}
		return nil
	})
	if err != nil {
		return nil // the suggestion is left out
	}
	return unknown
}

// Viewer returns the caller as a settings.Viewer of the catalog.
func (c *Call) Viewer(state settings.State) settings.Viewer {
	return settings.Viewer{
		Employee: c.By.Employee, Session: c.By.Session, Tools: c.By.Tools, Automation: c.Query.Get("automation_id"), Lists: access.Lists(c.By), Now: state.Now,
	}
}
