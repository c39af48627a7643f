package triage

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	"github.com/countersign-dev/countersign/internal/triage/label"
)

// Labels handles GET /api/v1/triage/accounts/{name}/labels. It lists the labels
// that the owner of an account describes.
func Labels(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageLabel, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return nil, err
		}
		return label.List(ctx, tx, c.By.Tenant, a.ID)
	})
}

// labeled returns the account and the valid name of a label.
func labeled(ctx context.Context, tx pgx.Tx, c *request.Call) (a account.Account, name string, err error) {
	name = c.R.PathValue("label")
	if a, err = account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name")); err == nil {
		err = label.ValidName(name, a.Proposals.Actions)
	}
	return a, name, err
}

func definition(in wire.TriageLabelInput) label.Definition {
	return label.Definition{Description: in.Description, Words: in.Words, For: in.For, Against: in.Against}
}

// TryLabel handles POST /api/v1/triage/accounts/{name}/labels/{label}/try. It
// matches a definition with past messages, which do not get the label.
func TryLabel(c *request.Call, in wire.TriageLabelInput) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageLabelTrial, error) {
		a, name, err := labeled(ctx, tx, c)
		if err != nil {
			return wire.TriageLabelTrial{}, err
		}
		return label.Try(ctx, tx, c.By.Tenant, a.ID, name, definition(in), c.By.Actor())
	})
}

// PutLabel handles PUT /api/v1/triage/accounts/{name}/labels/{label}. It sets the
// definition of a label, and requests a run that matches past messages.
func PutLabel(c *request.Call, in wire.TriageLabelInput) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageLabel, error) {
		a, name, err := labeled(ctx, tx, c)
		if err != nil {
			return wire.TriageLabel{}, err
		}
		made, err := label.Put(ctx, tx, c.By.Tenant, a.ID, name, definition(in), in.Untried, c.By.Actor())
		if err != nil {
			return made, err
		}
		if err := inspect.AskRun(ctx, tx, c.By.Tenant, a.ID); err != nil {
			return made, err
		}
		return made, c.RecordChange(ctx, tx, "triage label "+name+" of "+a.Name+" stored")
	})
}

// DeleteLabel handles DELETE /api/v1/triage/accounts/{name}/labels/{label}. It
// deletes a label with its matches.
func DeleteLabel(c *request.Call) error {
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		a, name, err := labeled(ctx, tx, c)
		if err != nil {
			return err
		}
		if err := label.Delete(ctx, tx, c.By.Tenant, a.ID, name); err != nil {
			return err
		}
		return c.RecordChange(ctx, tx, "triage label "+name+" of "+a.Name+" deleted")
	})
	if err != nil {
		return err
	}
	return c.NoContent()
}

// JudgeLabel handles PUT /api/v1/triage/messages/{id}/labels/{label}. It stores
// whether a message gets a label.
func JudgeLabel(c *request.Call, in wire.TriageLabelDecision) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageMessageLabel, error) {
		name := c.R.PathValue("label")
		made, err := label.Judge(ctx, tx, c.By.Tenant, id, name, in.Holds, c.By.Actor())
		if err != nil {
			return made, err
		}
		c.Detail = map[string]any{"label": name, "holds": in.Holds}
		return made, c.RecordChange(ctx, tx, "triage message "+id.String()+" label decided")
	})
}
