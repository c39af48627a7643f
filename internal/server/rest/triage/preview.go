package triage

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	"github.com/countersign-dev/countersign/internal/triage/preview"
)

// Preview handles POST /api/v1/triage/accounts/{name}/preview. It compares recent
// decisions about an account's mail with those under other settings. Sender and
// subject are shown to those who may read mail.
func Preview(c *request.Call, in wire.TriagePreviewRequest) error {
	now := time.Now()
	if in.Since.IsZero() {
		in.Since = now.Add(-preview.Week)
	}
	var of account.Account
	var travelling bool
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		if of, err = account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name")); err != nil {
			return err
		}
		travelling, err = inspect.Travelling(ctx, tx, c.By.Tenant, of.ID)
		return err
	})
	if err != nil {
		return err
	}
	next := of
	next.Settings = decide.Settings{}
	if err := errors.Join(convert(in.Settings, &next.Settings), next.Check()); err != nil {
		return err
	}
	if in.Travelling != nil {
		travelling = *in.Travelling
	}
	p := preview.New(of.Name, of.Settings, next.Settings, travelling, in.Since, now)
	if err := compare(c, p, of, in.Since); err != nil {
		return err
	}
	result := p.Result()
	if !access.ReadsMail(c.By) {
		for i := range result.Items {
			result.Items[i].Sender, result.Items[i].SenderName, result.Items[i].Subject = "", "", ""
		}
	}
	return c.JSON(http.StatusOK, result)
}

// compare adds the decisions page by page, each in a transaction of its own.
func compare(c *request.Call, p *preview.Preview, of account.Account, since time.Time) error {
	var place preview.Place
	for {
		var rows []preview.Row
		if err := c.InTx(func(ctx context.Context, tx pgx.Tx) (err error) {
			rows, err = preview.Page(ctx, tx, c.By.Tenant, of.ID, since, place)
			return err
		}); err != nil {
			return err
		}
		if !p.Add(rows) || len(rows) < preview.PageRows {
			return nil
		}
		place = rows[len(rows)-1].After()
	}
}
